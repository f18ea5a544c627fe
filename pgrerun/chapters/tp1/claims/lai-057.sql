WITH of AS (PIVOT postgres95_crash ON "when" IN ('before', 'open', 'after')
            USING any_value(balance) AS balance, any_value(versions) AS versions,
                  any_value(bytes) AS bytes)
SELECT 'a killed backend leaves its transaction''s new version on the disk' AS fact,
       max(open_versions) > max(before_versions) AND max(open_balance) <> max(before_balance) AS so,
       true AS essential
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'the next backend sees the former balances', max(after_balance) = max(before_balance), true
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'it takes nothing back: the version is still there', max(after_versions) = max(open_versions), true
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'nor does it write to the relation at all', max(after_bytes) = max(open_bytes), false
FROM of HAVING count(*) > 0
