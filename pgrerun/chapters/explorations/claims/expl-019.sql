SELECT 'with 64kB the planner makes a hash table' AS fact,
       plan LIKE 'HashAggregate%' AS so, true AS essential
FROM grouping_plans WHERE state = 'never vacuumed' AND work_mem_kb = 64
UNION ALL
SELECT 'made to, it puts batches on disk', batches > 1 AND disk_kb > 0, false
FROM hash_spills WHERE work_mem_kb = 64
UNION ALL
SELECT 'with 30MB it puts none on disk', batches = 1 AND disk_kb = 0, false
FROM hash_spills WHERE work_mem_kb = 30720
