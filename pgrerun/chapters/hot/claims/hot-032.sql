-- "Some of these cases would be solved", and the use of CLUSTER "would go away altogether". More and
-- less are so by a twentieth. Solved is a case where they went on growing before HOT.
WITH total AS (
    SELECT server, vacuumed, transaction_left_open,
           max(jobs + jobs_pkey) FILTER (moment = 'halfway') AS halfway,
           max(jobs + jobs_pkey) FILTER (moment = 'at the end') AS ended,
           max(jobs + jobs_pkey) FILTER (moment = 'after CLUSTER') AS clustered
    FROM queue_then GROUP BY ALL
), cases AS (
    SELECT vacuumed = 'after the last batch' AS late, transaction_left_open,
           w.ended <= 1.05 * w.halfway AS stops, w.ended - w.clustered AS given_back,
           w.ended - w.clustered < 0.95 * (b.ended - b.clustered) AS less,
           b.ended > 1.05 * b.halfway AS grew_then
    FROM total AS w JOIN total AS b USING (vacuumed, transaction_left_open)
    WHERE w.server = 'hot' AND b.server = 'before-hot'
)
SELECT 'in some of the cases in which the table and its index go on growing before HOT they stop with'
           || ' it, and CLUSTER then gives less back' AS fact,
       bool_or(stops AND less) FILTER (grew_then) AS so, true AS essential
FROM cases
UNION ALL
SELECT 'with HOT they stop growing in all cases: vacuumed in time, late, and beside a transaction that'
           || ' stays open',
       CASE WHEN count(*) = 3 THEN bool_and(stops) END, true
FROM cases
UNION ALL
SELECT 'after a transaction that stayed open all the while CLUSTER gives less back, too', less, false
FROM cases WHERE transaction_left_open
UNION ALL
SELECT 'where vacuum comes late CLUSTER gives less back, too', less, false
FROM cases WHERE late
UNION ALL
SELECT 'before HOT the table and its index go on growing where vacuum comes in time and nothing else is'
           || ' open', grew_then, false
FROM cases WHERE NOT (late OR transaction_left_open)
UNION ALL
SELECT 'with HOT CLUSTER then gives nothing back', given_back <= 0, false
FROM cases WHERE NOT (late OR transaction_left_open)
