SELECT 'most subsystems call the routine' AS fact,
       count(DISTINCT subsystem) > (SELECT count(*) FROM printed.profiling_subsystems) / 2 AS so
FROM postgres95_callers HAVING count(*) > 0
UNION ALL
SELECT 'an attribute that is used again is fetched again',
       max_by(calls, uses) > 1.5 * min_by(calls, uses)
FROM postgres95_uses HAVING count(*) > 0
