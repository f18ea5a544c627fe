WITH index AS (
    SELECT variant, before, after - before AS added,
           -- the page in front of the root and the last page of each level needn't split; a page
           -- above the leaves has 285 below it
           3 + CAST(before > 285 AS INT) + CAST(before > 285 * 285 AS INT) AS unsplit
    FROM sizes WHERE relation = 'accounts_pkey'
)
SELECT 'accounts_pkey doesn''t grow with HOT' AS fact, added = 0 AS so, true AS essential
FROM index WHERE variant = 'HOT'
UNION ALL
SELECT 'with neither HOT nor pruning each of its full pages splits, which doubles a large index',
       added >= before - unsplit, true
FROM index WHERE variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'with pruning but no HOT it doesn''t grow either', added = 0, false
FROM index WHERE variant = 'no HOT'
