WITH of AS (PIVOT postgres95_crash ON "when" IN ('before', 'open', 'after')
            USING any_value(balance) AS balance, any_value(writes) AS writes)
SELECT 'an open transaction''s changes are on the disk when its backend ends' AS fact,
       sum(open_writes) > 0 AND max(open_balance) <> max(before_balance) AS so
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'the next backend sees the former balances, and nothing was repaired',
       max(after_balance) = max(before_balance)
FROM of HAVING count(*) > 0
