-- what the case statement takes, with all that it calls; and the loop over tuples around it
SELECT 'query ' || query || CASE routine WHEN 'scan' THEN ', the loop over tuples around it' ELSE '' END AS part,
       max(inclusive) / max(total) AS value, routine = 'interpret' AS essential
FROM ingres_routines
JOIN (SELECT query, sum(instructions) AS total FROM ingres_routines
      WHERE tuples = 3360 AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
      GROUP BY query) USING (query)
WHERE query IN ('c', 'd', 'e') AND routine IN ('interpret', 'scan') AND tuples = 3360
      AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
GROUP BY query, routine ORDER BY routine, query
