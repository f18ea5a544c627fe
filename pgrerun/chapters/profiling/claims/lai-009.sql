-- Where no rule is: whether the rule manager's own routines take as much of the scans as in print after the report's mend.
SELECT coalesce(sum(instructions) FILTER (subsystem = 'rule manager'), 0) / sum(instructions)
       >= max(said.second) / 100 AS still_there
FROM profile CROSS JOIN printed.profiling_subsystems AS said
WHERE kind = 'routine' AND query_set = 'scans' AND said.label = 'rule manager'
HAVING count(*) > 0
