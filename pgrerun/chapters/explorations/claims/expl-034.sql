SELECT 'with one worker for the whole server two are planned' AS fact, planned = 2 AS so,
       true AS essential
FROM planned_workers WHERE max_parallel_workers = 1
UNION ALL
SELECT 'of these two one is launched', launched = 1, true
FROM planned_workers WHERE max_parallel_workers = 1
UNION ALL
SELECT 'with one worker for each Gather two are planned, too', planned = 2, false
FROM planned_workers WHERE max_parallel_workers_per_gather = 1
