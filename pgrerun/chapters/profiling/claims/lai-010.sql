-- Where no rule is: whether the rule manager's work grows with tuples or attributes, by more than a tenth, or takes as much
-- of a command as in print after the report's mend. Where rules for other commands are: whether they make this one dearer
-- by as much, wherever in the server they are asked about.
SELECT max(plain.in_rule_manager) > 1.1 * min(plain.in_rule_manager)
       OR max(plain.in_rule_manager / plain.in_all) >= max(said.second) / 100
       OR max(other.in_all / plain.in_all) >= 1 + max(said.second) / 100 AS still_there
FROM rules AS plain
CROSS JOIN printed.profiling_subsystems AS said
LEFT JOIN rules AS other
       ON other.ruled AND other.tuples = plain.tuples AND other.attributes = plain.attributes
WHERE NOT plain.ruled AND said.label = 'rule manager'
