SELECT CASE query WHEN 'd' THEN 'query d' ELSE 'the nine queries' END AS part,
       query = 'all' AS essential,
       sum(instructions) FILTER (WHERE routine = 'log') / sum(instructions) AS value
FROM (SELECT * FROM ingres_routines WHERE query = 'd' AND tuples = 3360
      UNION ALL
      SELECT * REPLACE ('all' AS query) FROM ingres_routines
      WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360))
WHERE organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
      AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
GROUP BY ALL ORDER BY part DESC
