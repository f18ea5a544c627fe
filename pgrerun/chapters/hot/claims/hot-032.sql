WITH total AS (
    SELECT variant, transaction_left_open,
           max(jobs + jobs_pkey) FILTER (moment = 'halfway') AS halfway,
           max(jobs + jobs_pkey) FILTER (moment = 'at the end') AS ended,
           max(jobs + jobs_pkey) FILTER (moment = 'after CLUSTER') AS clustered
    FROM queue GROUP BY ALL
), hot AS (FROM total WHERE variant = 'HOT' AND NOT transaction_left_open),
beside AS (FROM total WHERE variant = 'HOT' AND transaction_left_open),
pruned AS (FROM total WHERE variant = 'no HOT'),
without AS (FROM total WHERE variant = 'neither HOT nor pruning')
SELECT 'with HOT the table and its index stop growing' AS fact, ended <= halfway AS so,
       true AS essential
FROM hot
UNION ALL
SELECT 'with neither HOT nor pruning the table and its index go on growing', ended > halfway, true
FROM without
UNION ALL
SELECT 'CLUSTER then gives less back with HOT',
       hot.ended - hot.clustered < without.ended - without.clustered, true
FROM hot, without
UNION ALL
SELECT 'with HOT they stop growing beside a transaction that stays open, too', ended <= halfway,
       true
FROM beside
UNION ALL
SELECT 'with HOT CLUSTER gives nothing back', ended <= clustered, false FROM hot
UNION ALL
SELECT 'with pruning but no HOT they end larger than with both', pruned.ended > hot.ended, false
FROM pruned, hot
