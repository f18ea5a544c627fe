-- the printed estimate, with the branches that fail in a call of each routine as they are counted
WITH failing AS (
    SELECT upper(routine) AS key, sum(failed_branches) / sum(calls) AS failed FROM ingres_routines
    WHERE routine IN ('getsymbol', 'interpret') AND length(query) = 1 AND tuples IN (0, 1, 210, 3360)
          AND organization <> 'hash' AND processes = 'together' AND process = 'decomp70'
    GROUP BY routine
), saved AS (
    SELECT percent / 100 AS part_of_all, failed * step.value / 1e6 / call_ms AS part_of_call
    FROM failing JOIN printed.four_tactics_microcode USING (key) JOIN printed.four_tactics_profile USING (key),
         printed.four_tactics_said AS step
    WHERE step.key = 'fetch_ns' AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
)
SELECT sum(part_of_all * part_of_call / (1 - part_of_call)) AS value FROM saved HAVING count(*) > 0
