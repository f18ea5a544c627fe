WITH index AS (
    SELECT server, before, after - before AS added,
           -- the page in front of the root and the last page of each level needn't split; a page
           -- above the leaves has 285 below it
           3 + CAST(before > 285 AS INT) + CAST(before > 285 * 285 AS INT) AS unsplit
    FROM on_the_threads_servers WHERE relation = 'accounts_pkey'
)
SELECT 'on the commit with HOT accounts_pkey doesn''t grow' AS fact, added = 0 AS so,
       true AS essential
FROM index WHERE server = 'hot'
UNION ALL
SELECT 'on the commit before HOT each of its full pages splits, which doubles a large index',
       added >= before - unsplit, true
FROM index WHERE server = 'before-hot'
UNION ALL
SELECT 'by the share of itself that is printed, to a hundredth',
       added / before BETWEEN 0.99 * increase_head / initial_head
                          AND 1.01 * increase_head / initial_head, false
FROM index, printed.hot_growth WHERE server = 'before-hot' AND key = 'reduced_accounts_pkey'
