SELECT 'query ' || query AS part,
       sum(instructions) / sum(instructions) FILTER (WHERE process <> 'parser') AS value
FROM ingres_benchmark
WHERE tuples = 3360 AND organization <> 'hash' AND processes = 'together' AND process <> 'monitor'
GROUP BY query ORDER BY query
