-- Modules are the report's own breakdown, without system functions: these are the C library's, which calls
-- nothing of the system. A module calls the routine if a call stands anywhere in its code.
WITH modules AS (
    SELECT replace(label, ' (planner)', '') IN (SELECT subsystem FROM postgres95_callers) AS calls
    FROM printed.profiling_subsystems
    WHERE "first" IS NOT NULL AND label <> 'system functions'
)
SELECT 'nearly all modules call the routine, all but one' AS fact, count(*) FILTER (calls) >= count(*) - 1 AS so
FROM modules HAVING (SELECT count(*) FROM postgres95_callers) > 0
UNION ALL
SELECT 'each further use of an attribute is another call',
       max_by(calls, uses) - min_by(calls, uses) >= max(uses) - min(uses)
FROM postgres95_uses HAVING count(*) > 0
