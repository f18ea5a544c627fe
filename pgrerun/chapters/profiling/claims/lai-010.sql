SELECT 'ten times the tuples make the rule manager work more' AS fact,
       max(in_rule_manager) FILTER (tuples = 10000 AND attributes = 1 AND NOT ruled)
       > 1.1 * max(in_rule_manager) FILTER (tuples = 1000) AS so
FROM rules
UNION ALL
SELECT 'more attributes make the rule manager work more',
       max(in_rule_manager) FILTER (attributes = 13)
       > 1.1 * max(in_rule_manager) FILTER (tuples = 10000 AND attributes = 1 AND NOT ruled)
FROM rules
