WITH failing AS (
    SELECT upper(routine) AS key, sum(failed_branches) / sum(calls) AS failed FROM ingres_routines
    WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
          AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY routine
), net AS (
    SELECT key, failed * step.value / 1000 - call.value AS counted, net_us AS printed
    FROM failing JOIN printed.four_tactics_microcode_derived USING (key),
         printed.four_tactics_said AS step, printed.four_tactics_said AS call
    WHERE step.key = 'fetch_ns' AND call.key = 'microstore_us'
)
SELECT key || ' would lose' AS fact, counted < 0 AS so, counted > 0 AS opposite, true AS essential FROM net
UNION ALL
SELECT key || ' would lose by the printed number of branches', printed < 0, printed > 0, false FROM net
ORDER BY essential DESC, fact
