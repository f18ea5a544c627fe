-- Shares of itself by which accounts grows. The thread's had two vacuums, which take growth away; a
-- run that is over before autovacuum comes has none, so that of the printed growth it has at least
-- as much.
WITH grown AS (
    SELECT server, (after - before) / before AS share
    FROM on_the_threads_servers WHERE relation = 'accounts'
), printed_ AS (
    SELECT increase_head / initial_head AS share FROM printed.hot_growth
    WHERE key = 'reduced_accounts'
)
SELECT 'on the commit with HOT accounts grows by less than a thousandth' AS fact,
       share < 0.001 AS so, true AS essential
FROM grown WHERE server = 'hot'
UNION ALL
SELECT 'on the commit before HOT it grows by as much as printed, to a tenth, or by more',
       grown.share >= 0.9 * printed_.share, true
FROM grown, printed_ WHERE server = 'before-hot'
UNION ALL
SELECT 'by no more than printed, to a tenth', grown.share <= 1.1 * printed_.share, false
FROM grown, printed_ WHERE server = 'before-hot'
