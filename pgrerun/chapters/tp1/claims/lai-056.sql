WITH by_transaction AS (
    SELECT rung, transaction, sum(writes) AS writes,
           sum(flushes) FILTER (command = 'end' AND kind IN ('relation', 'index')) AS flushed,
           count(DISTINCT file) FILTER (writes > 0 AND kind IN ('relation', 'index')) AS files
    FROM postgres95_ladder WHERE steady GROUP BY ALL
)
SELECT 'a commit flushes every relation and index that its transaction changed' AS fact,
       bool_and(flushed >= files) AS so
FROM by_transaction WHERE rung = '48 pages' HAVING count(*) > 0
UNION ALL
SELECT 'with that a transaction writes more than six pages', avg(writes) > 6
FROM by_transaction WHERE rung = '48 pages' HAVING count(*) > 0
UNION ALL
SELECT 'without that it writes six at most', avg(writes) <= 6
FROM by_transaction WHERE rung = 'stable memory' HAVING count(*) > 0
