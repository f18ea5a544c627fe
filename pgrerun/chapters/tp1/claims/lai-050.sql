-- Of a build that looks its catalogs up by scans alone, from the first page to a match, as in 1990.
WITH read AS (
    SELECT file, kind, sum(reads) AS pages FROM postgres95_unindexed WHERE reads > 0 GROUP BY ALL
), queries AS (
    SELECT command, any_value(scans) AS scans FROM postgres95_unindexed
    WHERE scans IS NOT NULL GROUP BY command
)
SELECT 'a first transaction reads more than eighty pages' AS fact,
       sum(pages) > (SELECT value FROM printed.tp1_catalogs WHERE key = 'first_transaction_reads') AS so,
       true AS essential
FROM read HAVING count(*) > 0
UNION ALL
SELECT 'most of what it reads are catalogs that it scans, and not their indices',
       coalesce(sum(pages) FILTER (kind = 'catalog' AND NOT ends_with(file, 'ind')), 0) > sum(pages) / 2, true
FROM read HAVING count(*) > 0
UNION ALL
SELECT 'every query of it scans catalogs sequentially, several times', bool_and(scans > 1), true
FROM queries HAVING count(*) > 0
UNION ALL
SELECT 'every query of it reads several catalogs', min(catalogs) > 1, false
FROM (SELECT count(DISTINCT file) FILTER (kind = 'catalog' AND reads > 0) AS catalogs
      FROM postgres95_unindexed WHERE scans IS NOT NULL GROUP BY command)
HAVING count(*) > 0
UNION ALL
SELECT named || ' is read', named IN (SELECT file FROM read), false
FROM (VALUES ('pg_attribute'), ('pg_operator'), ('pg_class')) AS report(named)
WHERE EXISTS (FROM read)
