SELECT upper(routine) AS part, sum(failed_branches) / sum(calls) AS value FROM ingres_routines
WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
      AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
      AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
GROUP BY routine ORDER BY routine
