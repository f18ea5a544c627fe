SELECT 'PostgreSQL takes a nested loop' AS fact,
       bool_and(method = 'nested loop') AS so, true AS essential
FROM planned_joins WHERE size = 'report' AND query IN (5, 6) AND chosen
UNION ALL
SELECT 'PostgreSQL can be forced to nothing but a nested loop', bool_and(method = 'nested loop'), true
FROM planned_joins WHERE size = 'report' AND query IN (5, 6) AND obeyed
UNION ALL
SELECT 'no engine here takes another method for it', bool_and(join_by LIKE '%nested loop%'), false
FROM non_equal_joins
