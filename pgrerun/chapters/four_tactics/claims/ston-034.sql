-- A track holds sixteen blocks of 1,024 bytes, so 32 of University INGRES's pages.
WITH simple AS (
    SELECT query, sum(catalog_reads) AS catalogs, sum(relation_reads) AS data FROM ingres_benchmark
    WHERE tuples <= 1 AND processes = 'together' GROUP BY query
), gains AS (
    SELECT query, catalogs, data, speed_up FROM simple
    JOIN printed.four_tactics_files_wall_derived AS p USING (query) WHERE p.size <= 1
)
SELECT 'each command on one row reads catalogs, and more often than data' AS fact,
       bool_and(catalogs > data) AS so, false AS essential
FROM gains WHERE query <> 'a' HAVING count(*) > 0
UNION ALL
SELECT 'in print no command gains that reads no catalog', bool_and(catalogs > 0 OR speed_up <= 1), true
FROM gains HAVING count(*) > 0
UNION ALL
SELECT 'reading its whole track at once spares a command on one row a read of a catalog',
       count(*) > count(DISTINCT (query, process, relation, page // 32)), true
FROM ingres_requests
WHERE tuples = 1 AND query IN ('b', 'c', 'd') AND writes = 0
      AND relation IN ('relation', 'attribute', 'indexes', 'tree', 'protect', 'integrities')
HAVING count(*) > 0
UNION ALL
SELECT 'in print those gain more that read more of them', corr(speed_up, catalogs) > 0, false FROM gains HAVING count(*) > 0
