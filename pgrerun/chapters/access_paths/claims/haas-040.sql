-- Whether autovacuum came at all is seen at the table with most dead rows.
WITH came AS (
    SELECT bool_or(vacuumed > 0) AS seen FROM autovacuum WHERE "table" = 'half of the rows are updated'
)
SELECT 'a table that only grows stays unmarked' AS fact,
       CASE WHEN seen THEN marked < 0.1 * pages END AS so, true AS essential
FROM autovacuum, came WHERE "table" = 'rows are only inserted'
UNION ALL
SELECT 'a table with an update on every page stays unmarked',
       CASE WHEN seen THEN marked < 0.1 * pages END, true
FROM autovacuum, came WHERE "table" = 'a row in twenty is updated'
UNION ALL
SELECT 'by the rule before PostgreSQL 13 a table that only grows stays unmarked',
       CASE WHEN seen THEN marked < 0.1 * pages END, false
FROM autovacuum, came WHERE "table" = 'the same, by the rule before PostgreSQL 13'
