WITH grown AS (
    SELECT variant, after / before AS times FROM sizes WHERE relation = 'accounts'
)
SELECT 'with HOT accounts keeps its size' AS fact, times BETWEEN 1 / 1.05 AND 1.05 AS so,
       true AS essential
FROM grown WHERE variant = 'HOT'
UNION ALL
SELECT 'with neither HOT nor pruning accounts grows', times > 1.05, true
FROM grown WHERE variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'without any vacuum it grows as far as printed',
       times / times_head BETWEEN 1 / 1.05 AND 1.05, false
FROM grown, printed.hot_growth_derived
WHERE variant = 'neither HOT nor pruning' AND key = 'reduced_accounts'
