-- Modules are the report's own breakdown; what it calls system functions is the C library, which calls nothing.
SELECT 'nearly all modules call the routine: all but one' AS fact,
       count(*) FILTER (replace(label, ' (planner)', '') IN (SELECT subsystem FROM postgres95_callers))
       >= count(*) - 1 AS so
FROM printed.profiling_subsystems WHERE "first" IS NOT NULL AND label <> 'system functions'
HAVING (SELECT count(*) FROM postgres95_callers) > 0
UNION ALL
SELECT 'each further use of an attribute is another call',
       max_by(calls, uses) - min_by(calls, uses) >= max(uses) - min(uses)
FROM postgres95_uses HAVING count(*) > 0
