-- How often POSTGRES called it is printed as cycles, and cycles of a call. Postgres95 calls it once for each use of an
-- attribute in a condition, and as often as POSTGRES did: so that is no part of what was saved, is told and decides nothing.
SELECT 'the scans call it as often as in print after the change, to a tenth' AS fact,
       abs(calls / (said.cycles / said.per_call) - 1) <= 0.1 AS so, true AS essential
FROM printed.profiling_routines AS said,
     (SELECT sum(calls) AS calls FROM postgres95_profile
      WHERE variant = 'assertions' AND query_set = 'scans' AND routine = 'fastgetattr')
WHERE key = 'second_fastgetattr'
UNION ALL
SELECT 'in a condition, most further uses of an attribute need no call',
       max_by(calls, uses) - min_by(calls, uses) < (max(uses) - min(uses)) / 2, false
FROM postgres95_uses HAVING count(*) > 0
