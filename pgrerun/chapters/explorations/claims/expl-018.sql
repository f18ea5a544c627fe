SELECT 'the plan is the same with every work_mem' AS fact, count(DISTINCT plan) = 1 AS so
FROM twenty_groups
UNION ALL
SELECT 'pages, batches and memory are the same with every work_mem',
       count(DISTINCT row(pages, batches, disk_kb, memory_kb)) = 1
FROM twenty_groups
