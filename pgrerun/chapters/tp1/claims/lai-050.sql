-- Where no page is read twice, a catalog is read from end to end if one command reads all its pages.
WITH by_command AS (
    SELECT l.file, s.pages, l.command, sum(l.reads) AS reads
    FROM postgres95_ladder AS l JOIN postgres95_sizes AS s USING (file)
    WHERE rung = '48 pages' AND transaction = 0 AND s.kind = 'catalog' AND NOT s.index AND s.pages > 1
    GROUP BY ALL
)
SELECT 'a first transaction reads more than eighty pages' AS fact,
       sum(reads) > (SELECT value FROM printed.tp1_catalogs WHERE key = 'first_transaction_reads') AS so
FROM postgres95_ladder WHERE rung = 'one backend' AND transaction = 0 HAVING count(*) > 0
UNION ALL
SELECT 'several catalogs are read from end to end', count(DISTINCT file) FILTER (reads >= pages) > 1
FROM by_command HAVING count(*) > 0
