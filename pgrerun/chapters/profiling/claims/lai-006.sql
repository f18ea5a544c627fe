-- Modules are the report's own breakdown, without two: system functions are the C library, which calls
-- nothing of the system, and Postgres95's rule manager doesn't look at tuples any more. A module that
-- isn't seen to call in two sets of commands may call in others, and could have called before the
-- report's change: so what is seen can show that nearly all do, and never that they don't.
WITH modules AS (
    SELECT replace(label, ' (planner)', '') IN (SELECT subsystem FROM postgres95_callers) AS calls
    FROM printed.profiling_subsystems
    WHERE "first" IS NOT NULL AND label NOT IN ('system functions', 'rule manager')
)
SELECT 'nearly all modules call the routine, all but one: in these commands ' || count(*) FILTER (calls)
       || ' of ' || count(*) || ' are seen to' AS fact,
       CASE WHEN count(*) FILTER (calls) >= count(*) - 1 THEN true END AS so
FROM modules HAVING (SELECT count(*) FROM postgres95_callers) > 0
UNION ALL
SELECT 'each further use of an attribute is another call',
       max_by(calls, uses) - min_by(calls, uses) >= max(uses) - min(uses)
FROM postgres95_uses HAVING count(*) > 0
