-- Of the database of the bank. Status files are no catalogs, as in lai-052.
WITH taken AS (
    SELECT 'pg_attribute takes' AS what, 'attribute_pages' AS key, sum(pages) AS pages
    FROM postgres95_sizes WHERE file = 'pg_attribute'
    UNION ALL
    SELECT 'all system catalogs take', 'catalog_pages', sum(pages)
    FROM postgres95_sizes WHERE kind = 'catalog' AND NOT index
)
SELECT what || ' as many pages as in print, to one page' AS fact, abs(pages - value) <= 1 AS so
FROM taken JOIN printed.tp1_catalogs USING (key) WHERE pages > 0
