WITH grown AS (
    SELECT variant, after - before AS pages FROM small_tables WHERE relation = 'branches_pkey'
)
SELECT 'with HOT branches_pkey doesn''t grow' AS fact, pages = 0 AS so, true AS essential
FROM grown WHERE variant = 'HOT'
UNION ALL
SELECT 'with neither HOT nor pruning branches_pkey grows', pages > 0, true
FROM grown WHERE variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'with pruning but no HOT it doesn''t grow either', pages = 0, false
FROM grown WHERE variant = 'no HOT'
