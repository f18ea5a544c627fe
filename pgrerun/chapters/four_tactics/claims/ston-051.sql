SELECT 'query ' || query || ' asks for pages more than once' AS fact,
       sum(relation_reads) > sum(relation_pages) AS so, query IN ('f', 'g', 'h', 'i') AS essential
FROM ingres_benchmark
WHERE tuples = 3360 AND organization <> 'hash' AND processes = 'together'
GROUP BY query ORDER BY query
