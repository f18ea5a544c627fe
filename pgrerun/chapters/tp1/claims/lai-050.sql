-- A catalog without an index can only be scanned, from its first page to a match.
WITH scanned AS (
    SELECT s.file, coalesce(bool_or(l.reads > 0), false) AS so
    FROM postgres95_sizes AS s LEFT JOIN postgres95_ladder AS l
        ON s.file = l.file AND l.rung = 'one backend' AND l.transaction = 0
    WHERE s.kind = 'catalog' AND NOT s.index AND NOT s.indexed GROUP BY s.file
)
SELECT 'a first transaction reads more than eighty pages' AS fact,
       sum(reads) > (SELECT value FROM printed.tp1_catalogs WHERE key = 'first_transaction_reads') AS so,
       true AS essential
FROM postgres95_ladder WHERE rung = 'one backend' AND transaction = 0 HAVING count(*) > 0
UNION ALL
SELECT 'it scans several catalogs sequentially', count(*) FILTER (so) > 1, true
FROM scanned HAVING count(*) > 0
UNION ALL
SELECT 'every query of it scans catalogs sequentially', bool_and(scans > 0), true
FROM postgres95_planning HAVING count(*) > 0
UNION ALL
SELECT named || ' is among them', coalesce(bool_or(so), false), false
FROM (VALUES ('pg_attribute'), ('pg_operator'), ('pg_class')) AS report(named)
    LEFT JOIN scanned ON file = named
GROUP BY named
