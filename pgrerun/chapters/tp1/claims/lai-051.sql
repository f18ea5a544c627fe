-- Of the database of the bank. Status files are no catalogs, as in lai-052.
SELECT 'pg_attribute' AS part, pages AS value FROM postgres95_sizes WHERE file = 'pg_attribute'
UNION ALL
SELECT 'all system catalogs', sum(pages) FROM postgres95_sizes
WHERE kind = 'catalog' AND NOT index HAVING count(*) > 0
