-- Of the lock table, whose partitions have a lightweight lock each, the one waited for most.
-- Contended is what one lookup in a hundred waits for.
WITH counted AS (
    SELECT build, max(waits) FILTER (lock = 'a partition of the lock table') AS waits,
           max(waits) FILTER (lock <> 'a partition of the lock table') AS others,
           max(transactions) AS lookups, max(blocked) AS blocked
    FROM lookup_locks GROUP BY build
)
SELECT 'in 9.1 at least one lookup in a hundred waits for the lock table' AS fact,
       waits >= 0.01 * lookups AS so, true AS essential
FROM counted WHERE build LIKE '9.1%'
UNION ALL
SELECT 'none of them is seen to wait for a lock that another holds', blocked = 0, true
FROM counted WHERE build LIKE '9.1%'
UNION ALL
SELECT 'in 9.2 they wait for it less than a tenth as often',
       min(waits / lookups) FILTER (build LIKE '9.2%')
       < 0.1 * min(waits / lookups) FILTER (build LIKE '9.1%'), true
FROM counted
UNION ALL
SELECT 'in 9.1 they wait for it more often than for any other lightweight lock', waits > others, false
FROM counted WHERE build LIKE '9.1%'
