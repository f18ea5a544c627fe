-- the printed estimate, with the share of each routine's branches that fails in a call as it is counted
WITH failing AS (
    SELECT part, upper(routine) AS key,
           sum(CASE part WHEN 'taken' THEN taken_branches ELSE failed_branches END) / sum(calls) / max(branches) AS share
    FROM ingres_routines, (VALUES ('not taken'), ('taken')) AS reading(part)
    WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
          AND fillfactor = 100 AND (organization = 'hash') = (query = 'h') AND processes = 'together' AND process = 'decomp70'
    GROUP BY part, routine
), saved AS (
    SELECT part, percent / 100 AS part_of_all, share * branches * step.value / 1e6 / call_ms AS part_of_call
    FROM failing JOIN printed.four_tactics_microcode USING (key) JOIN printed.four_tactics_profile USING (key),
         printed.four_tactics_said AS step
    WHERE step.key = 'fetch_ns' AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
)
SELECT part, sum(part_of_all * part_of_call / (1 - part_of_call)) AS value FROM saved GROUP BY part ORDER BY part
