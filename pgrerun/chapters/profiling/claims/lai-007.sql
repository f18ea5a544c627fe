-- The two builds differ in whether POSTGRES's own rule manager asks first if there is a rule at all, and so in
-- what it has fetched of each scanned tuple, and in nothing else.
-- How often POSTGRES called the routine is printed as cycles, and cycles of a call.
WITH calls AS (
    SELECT sum(calls) FILTER (variant = 'rules asked for each attribute') AS before,
           sum(calls) FILTER (variant = 'rules asked for first') AS after
    FROM postgres95_changes WHERE routine = 'fastgetattr'
)
SELECT 'of its calls as many are left as in print, to a tenth' AS fact,
       abs(after / before / (1 - said.value / 100) - 1) <= 0.1 AS so, true AS essential
FROM calls, printed.profiling_said AS said
WHERE key = 'calls_saved' AND before IS NOT NULL AND after IS NOT NULL
UNION ALL
SELECT 'results are saved: in a condition, most further uses of an attribute need no call',
       max_by(calls, uses) - min_by(calls, uses) < (max(uses) - min(uses)) / 2, true
FROM postgres95_uses HAVING count(*) > 0 AND (SELECT before IS NOT NULL AND after IS NOT NULL FROM calls)
UNION ALL
SELECT 'before the change the scans call it as often as in print, to a tenth',
       abs(before / (cycles / per_call) - 1) <= 0.1, false
FROM calls, printed.profiling_routines WHERE key = 'first_fastgetattr' AND before IS NOT NULL
