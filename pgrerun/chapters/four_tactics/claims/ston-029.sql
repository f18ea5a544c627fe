WITH failing AS (
    SELECT reading, upper(routine) AS key, sum(calls) AS calls,
           sum(CASE reading WHEN 'taken' THEN taken_branches ELSE failed_branches END) / sum(calls) / max(branches) AS share
    FROM ingres_routines, (VALUES ('not taken'), ('taken')) AS readings(reading)
    WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
          AND fillfactor = 100 AND (organization = 'hash') = (query = 'h') AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY reading, routine
), net AS (
    SELECT reading, key, calls, share * branches * step.value / 1000 - call.value AS counted,
           net_us AS printed
    FROM failing JOIN printed.four_tactics_microcode_derived USING (key),
         printed.four_tactics_said AS step, printed.four_tactics_said AS call
    WHERE step.key = 'fetch_ns' AND call.key = 'microstore_us'
)
SELECT key || ' would lose, whichever branches fail' AS fact,
       CASE WHEN max(counted) < 0 THEN true WHEN min(counted) > 0 THEN false END AS so,
       min(counted) > 0 AS opposite, false AS essential
FROM net GROUP BY key
UNION ALL
SELECT 'both together would lose if branches fail that are ' || reading, sum(calls * counted) < 0,
       sum(calls * counted) > 0, true
FROM net GROUP BY reading
UNION ALL
SELECT DISTINCT key || ' would lose by the printed number of branches', printed < 0, printed > 0, false FROM net
ORDER BY essential DESC, fact
