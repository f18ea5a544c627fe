-- By a tenth of the samples, beyond the error of their number.
WITH pair AS (
    SELECT q.low, q.high, f.share + 0.1 AS allowed
    FROM profiles AS q JOIN profiles AS f USING (instrument, part)
    WHERE q.load = 'all the same lock' AND f.load = 'each its own lock'
      AND instrument = 'context switches' AND part = 'a heavyweight lock'
)
SELECT 'among the reasons to sleep the lock appears' AS fact,
       CASE WHEN low > allowed THEN true WHEN high < allowed THEN false END AS so, true AS essential
FROM pair
UNION ALL
SELECT 'waiting for the lock costs throughput',
       max(tps) FILTER (load = 'all the same lock')
           < 0.8 * max(tps) FILTER (load = 'each its own lock'),
       false
FROM profiles
