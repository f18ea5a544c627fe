WITH falls AS (
    SELECT *, index_only < lag(index_only) OVER (ORDER BY percent) AS cheaper FROM costs
)
SELECT 'the estimated cost of an index-only scan falls with that share' AS fact,
       bool_and(cheaper) AS so
FROM falls
UNION ALL
SELECT 'a false share changes the plan', count(DISTINCT chosen) > 1 FROM costs
UNION ALL
SELECT 'other scans'' costs don''t depend on it',
       count(DISTINCT plain) = 1 AND count(DISTINCT sequential) = 1
FROM costs
