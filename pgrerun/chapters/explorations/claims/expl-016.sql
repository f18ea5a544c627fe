-- Of Query 1, as expl-019: by the plan that the planner takes by itself.
SELECT 'with both it makes a hash table of Query 1''s groups' AS fact,
       bool_and(plan LIKE 'HashAggregate%') AS so, true AS essential
FROM grouping_plans WHERE state = 'never vacuumed' AND work_mem_kb IN (64, 4096)
UNION ALL
SELECT 'with 64kB it does', bool_and(plan LIKE 'HashAggregate%'), false
FROM grouping_plans WHERE state = 'never vacuumed' AND work_mem_kb = 64
UNION ALL
SELECT 'with 4MB it does', bool_and(plan LIKE 'HashAggregate%'), false
FROM grouping_plans WHERE state = 'never vacuumed' AND work_mem_kb = 4096
