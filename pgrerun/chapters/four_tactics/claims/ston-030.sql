SELECT 'query ' || query AS part,
       sum(instructions) FILTER (WHERE process = 'ovqp') / sum(instructions) AS value
FROM ingres_benchmark
WHERE tuples = 3360 AND organization <> 'hash' AND processes = 'separate' AND process <> 'monitor'
GROUP BY query ORDER BY query
