-- Each work_mem with which forced hashing goes to disk, with an index at hand and without.
SELECT 'with ' || CASE WHEN work_mem_kb < 1024 THEN work_mem_kb || 'kB'
                       ELSE work_mem_kb // 1024 || 'MB' END
           || CASE p.state WHEN 'no index used' THEN ' and no index' ELSE '' END
           || ', where hashing would spill, another plan is picked' AS fact,
       NOT starts_with(p.plan, 'HashAggregate') AS so
FROM grouping_plans p JOIN hash_spills h USING (work_mem_kb)
WHERE h.batches > 1 AND p.state IN ('never vacuumed', 'no index used')
ORDER BY p.state, work_mem_kb
