-- the terminal's process is no part of a command
SELECT 'query ' || query AS part,
       sum(instructions) / sum(instructions) FILTER (WHERE process <> 'parser') AS value
FROM ingres_benchmark
WHERE tuples <= 1 AND processes = 'together' AND process <> 'monitor'
GROUP BY query ORDER BY query
