SELECT 'CREATE INDEX gathers statistics' AS fact,
       with_statistics > 0 AS so, true AS essential
FROM index_creation WHERE step = 'CREATE INDEX'
UNION ALL
SELECT 'an index tells the optimizer that there are greater values than it knows of',
       max(expected) FILTER (step LIKE '%CREATE INDEX') > max(expected) FILTER (step LIKE '%no index'),
       false
FROM index_creation WHERE step LIKE 'rows added above%'
