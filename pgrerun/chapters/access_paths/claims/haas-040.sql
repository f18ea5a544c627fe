SELECT 'a table that only grows stays unmarked' AS fact, marked < 0.1 * pages AS so
FROM autovacuum WHERE "table" = 'rows are only inserted'
UNION ALL
SELECT 'a table with an update on every page stays unmarked', marked < 0.1 * pages
FROM autovacuum WHERE "table" = 'a row in twenty is updated'
