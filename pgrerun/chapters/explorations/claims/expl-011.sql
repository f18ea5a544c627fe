-- Each of the slides' settings with which forced hashing goes to disk.
WITH short AS (
    SELECT p.work_mem_kb, p.state, NOT starts_with(p.plan, 'HashAggregate') AS another,
           CASE p.work_mem_kb WHEN 64 THEN '64kB' WHEN 4096 THEN '4MB' ELSE '30MB' END AS work_mem
    FROM grouping_plans p JOIN hash_spills h USING (work_mem_kb)
    WHERE h.batches > 1 AND p.work_mem_kb IN (64, 4096, 30720)
)
SELECT 'with ' || work_mem || ', where hashing would spill, another plan is picked' AS fact,
       another AS so, true AS essential
FROM short WHERE state = 'never vacuumed'
UNION ALL
SELECT 'without the index, too, with ' || work_mem, another, false
FROM short WHERE state = 'no index used'
