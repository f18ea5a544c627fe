-- On the server under test, and on each build of 2012 that counts.
WITH seen AS (
    SELECT coalesce(sum(waits) FILTER (instrument = 'views'), 0) AS by_views,
           coalesce(sum(waits) FILTER (instrument = 'call chains'), 0) AS by_chains,
           any_value(spins) AS spins, any_value(taken) AS views_that_count
    FROM lightweight_locks
    WHERE server = 'the server under test' AND lock = 'all together'
)
SELECT 'while backends wait for a lightweight lock, no view tells for which' AS fact,
       CASE WHEN by_views > 0 THEN false WHEN by_chains > 0 THEN true END AS so, true AS essential
FROM seen
UNION ALL
SELECT 'no view tells how often such a lock was taken', views_that_count = 0, true FROM seen
UNION ALL
SELECT 'no view was seen to tell of a backend that spins', CASE WHEN spins > 0 THEN false END, false
FROM seen
UNION ALL
SELECT 'on ' || server || ' LWLOCK_STATS counts waits where no view tells of one',
       sum(waits) FILTER (instrument = 'LWLOCK_STATS') > 0
       AND sum(waits) FILTER (instrument = 'views') = 0, true
FROM lightweight_locks WHERE server <> 'the server under test' GROUP BY server
