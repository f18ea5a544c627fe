SELECT 'with ' || CASE work_mem_kb WHEN 64 THEN '64kB' ELSE '4MB' END
           || ': GroupAggregate(Index Only Scan its key)' AS fact,
       plan = 'GroupAggregate(Index Only Scan its key)' AS so
FROM grouping_plans WHERE state = 'never vacuumed' AND work_mem_kb IN (64, 4096)
ORDER BY work_mem_kb
