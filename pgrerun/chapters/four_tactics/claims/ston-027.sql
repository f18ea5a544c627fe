SELECT upper(routine) || ', ' || reading AS part,
       sum(CASE reading WHEN 'taken' THEN taken_branches ELSE failed_branches END) / sum(calls) / max(branches) AS value
FROM ingres_routines, (VALUES ('not taken'), ('taken')) AS readings(reading)
WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
      AND fillfactor = 100 AND (organization = 'hash') = (query = 'h') AND processes = 'together' AND process = 'decomp70'
      AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
GROUP BY routine, reading ORDER BY part
