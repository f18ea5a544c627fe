-- How often POSTGRES called it is printed as cycles, and cycles of a call.
SELECT 'the scans call it as often as in print after the change, to a tenth' AS fact,
       abs(calls / (said.cycles / said.per_call) - 1) <= 0.1 AS so
FROM printed.profiling_routines AS said,
     (SELECT sum(calls) AS calls FROM postgres95_profile
      WHERE variant = 'assertions' AND query_set = 'scans' AND routine = 'fastgetattr')
WHERE key = 'second_fastgetattr'
UNION ALL
-- Whenever possible: of further uses of an attribute less than half may need a call.
SELECT 'most further uses of an attribute need no call',
       max_by(calls, uses) - min_by(calls, uses) < (max(uses) - min(uses)) / 2
FROM postgres95_uses HAVING count(*) > 0
