-- Whether the work grows with tuples or with attributes, by more than a tenth, where no rule is.
SELECT max(in_rule_manager) > 1.1 * min(in_rule_manager) AS still_there FROM rules WHERE NOT ruled
