-- what the case statement takes, with all that it calls
SELECT 'query ' || query AS part, max(inclusive) / max(total) AS value
FROM ingres_routines
JOIN (SELECT query, sum(instructions) AS total FROM ingres_routines
      WHERE tuples = 3360 AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
      GROUP BY query) USING (query)
WHERE query IN ('c', 'd', 'e') AND routine = 'interpret' AND tuples = 3360
      AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
GROUP BY query ORDER BY query
