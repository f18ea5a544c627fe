-- With relation locks on the fast path, the lock that a lookup still puts into the lock table is its
-- virtual transaction's; with the commit that is a lightweight lock of the backend's own.
WITH visits AS (
    SELECT build, sum(calls) FILTER (function = 'hash_search_with_hash_value' AND called_by IN
               ('SetupLockInTable', 'LockAcquire', 'LockAcquireExtended')) AS in_the_table,
           sum(calls) FILTER (called_by = 'VirtualXactLockTableInsert') AS of_its_own
    FROM lookup_calls WHERE build IN ('lazyvxid-before', 'lazyvxid') GROUP BY build
), patch AS (
    SELECT coalesce(max(in_the_table) FILTER (build = 'lazyvxid-before'), 0) AS before,
           coalesce(max(in_the_table) FILTER (build = 'lazyvxid'), 0) AS after,
           coalesce(max(of_its_own) FILTER (build = 'lazyvxid'), 0) AS of_its_own
    FROM visits HAVING count(*) = 2
)
SELECT 'before the commit a lookup puts a lock into the lock table' AS fact, before > 0 AS so FROM patch
UNION ALL SELECT 'with it none, and its virtual transaction''s takes a lock of the backend''s own',
       after = 0 AND of_its_own > 0 FROM patch
