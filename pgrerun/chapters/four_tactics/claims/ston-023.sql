WITH counted AS (
    SELECT 'the nine queries' AS part, true AS essential, routine, instructions FROM ingres_routines
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND organization <> 'hash'
          AND processes = 'together' AND process = 'decomp70'
    UNION ALL
    SELECT 'without query h', true, routine, instructions FROM ingres_routines
    WHERE length(query) = 1 AND query <> 'h' AND tuples IN (0, 1, 210, 3360) AND organization <> 'hash'
          AND processes = 'together' AND process = 'decomp70'
    UNION ALL
    SELECT 'a scan with one condition', false, routine, instructions FROM ingres_routines
    WHERE query = 'one qualification' AND tuples = 3360 AND processes = 'separate' AND process IN ('ovqp', 'decomp')
)
SELECT part, essential,
       sum(instructions) FILTER (WHERE routine IN ('getsymbol', 'interpret')) / sum(instructions) AS value
FROM counted
WHERE EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
GROUP BY part, essential ORDER BY part DESC
