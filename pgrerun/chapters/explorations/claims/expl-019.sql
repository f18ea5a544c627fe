SELECT 'with 64kB hashing puts batches on disk' AS fact, batches > 1 AND disk_kb > 0 AS so
FROM hash_spills WHERE work_mem_kb = 64
UNION ALL
SELECT 'with 30MB hashing puts none on disk', batches = 1 AND disk_kb = 0
FROM hash_spills WHERE work_mem_kb = 30720
