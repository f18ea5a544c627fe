-- A replacement enters a new version into its relation, and its place there into the index; an append changes
-- the relation. That seven files are more than six pages follows from the first fact, and decides nothing.
WITH changed(file) AS (
    VALUES ('account'), ('account_index'), ('teller'), ('teller_index'), ('branch'), ('branch_index'), ('history')
), by_transaction AS (
    SELECT rung, transaction, sum(writes) AS writes,
           list(file) FILTER (command = 'end' AND writes > 0 AND flushes > 0) AS forced
    FROM postgres95_ladder WHERE steady GROUP BY ALL
), of AS (PIVOT postgres95_crash ON "when" IN ('before', 'open', 'forced', 'stable')
          USING any_value(balance) AS balance, any_value(ahead) AS ahead)
SELECT 'a commit writes and flushes each of the four relations and three indexes that its transaction changes' AS fact,
       bool_and(list_contains(coalesce(forced, []), file)) AS so, true AS essential
FROM by_transaction, changed WHERE rung = '48 pages' HAVING count(*) > 0
UNION ALL
SELECT 'it flushes them before it writes the transaction''s status',
       max(forced_ahead) = (SELECT count(*) FROM changed), true
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'after that a killed backend''s committed change is there',
       max(forced_balance) = max(open_balance) AND max(open_balance) <> max(before_balance), true
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'without that it is lost',
       max(stable_balance) = max(before_balance) AND max(open_balance) <> max(before_balance), true
FROM of HAVING count(*) > 0
UNION ALL
SELECT 'with that a transaction writes more than six pages', avg(writes) > 6, false
FROM by_transaction WHERE rung = '48 pages' HAVING count(*) > 0
UNION ALL
SELECT 'without that it writes six at most', avg(writes) <= 6, true
FROM by_transaction WHERE rung = 'stable memory' HAVING count(*) > 0
