-- What CLUSTER gives back is what it was needed for. More and less are so by a twentieth.
WITH total AS (
    SELECT server, transaction_left_open,
           max(jobs + jobs_pkey) FILTER (moment = 'halfway') AS halfway,
           max(jobs + jobs_pkey) FILTER (moment = 'at the end') AS ended,
           max(jobs + jobs_pkey) FILTER (moment = 'after CLUSTER') AS clustered
    FROM queue_then GROUP BY ALL
), both_ AS (
    SELECT transaction_left_open, w.halfway, w.ended, w.ended - w.clustered AS given_back,
           b.halfway AS halfway_then, b.ended AS ended_then,
           b.ended - b.clustered AS given_back_then
    FROM total AS w JOIN total AS b USING (transaction_left_open)
    WHERE w.server = 'hot' AND b.server = 'before-hot'
), alone AS (FROM both_ WHERE NOT transaction_left_open),
beside AS (FROM both_ WHERE transaction_left_open)
SELECT 'with HOT and nothing else open the table and its index stop growing' AS fact,
       ended <= 1.05 * halfway AS so, true AS essential
FROM alone
UNION ALL
SELECT 'CLUSTER then gives less back than before HOT', given_back < 0.95 * given_back_then, true
FROM alone
UNION ALL
SELECT 'after a transaction that stayed open all the while it gives less back, too',
       given_back < 0.95 * given_back_then, true
FROM beside
UNION ALL
SELECT 'before HOT the table and its index go on growing with nothing else open',
       ended_then > 1.05 * halfway_then, false
FROM alone
UNION ALL
SELECT 'with HOT and nothing else open CLUSTER gives nothing back', given_back <= 0, false
FROM alone
