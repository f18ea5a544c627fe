-- A catalog without an index can only be scanned, from its first page to a match.
WITH read AS (
    SELECT file, kind, sum(reads) AS pages FROM postgres95_ladder
    WHERE rung = 'one backend' AND transaction = 0 AND reads > 0 GROUP BY ALL
), scanned AS (
    SELECT file FROM postgres95_sizes WHERE kind = 'catalog' AND NOT index AND NOT indexed
)
SELECT 'a first transaction reads more than eighty pages' AS fact,
       sum(pages) > (SELECT value FROM printed.tp1_catalogs WHERE key = 'first_transaction_reads') AS so,
       true AS essential
FROM read HAVING count(*) > 0
UNION ALL
SELECT 'most of what it reads are catalogs without an index, which can only be scanned',
       coalesce(sum(pages) FILTER (file IN (FROM scanned)), 0) > sum(pages) / 2, true
FROM read HAVING count(*) > 0
UNION ALL
SELECT 'every query of it scans catalogs sequentially, several times', bool_and(scans > 1), true
FROM postgres95_planning HAVING count(*) > 0
UNION ALL
SELECT named || ' is read and has no index', named IN (SELECT file FROM read) AND named IN (FROM scanned), false
FROM (VALUES ('pg_attribute'), ('pg_operator'), ('pg_class')) AS report(named)
WHERE EXISTS (FROM read)
