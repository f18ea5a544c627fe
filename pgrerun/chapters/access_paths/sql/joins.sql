-- The talk's query in two forms, and its relatives. The small relation has ten keys: every step-th.

-- name: free
SELECT * FROM generate_series(:first, :last, :step) AS g
LEFT JOIN (:"a" AS a JOIN :"b" AS b USING (aid)) ON g = aid;

-- name: inner_joins
SELECT * FROM generate_series(:first, :last, :step) AS g
JOIN (:"a" AS a JOIN :"b" AS b USING (aid)) ON g = aid;

-- name: left_joins
SELECT * FROM generate_series(:first, :last, :step) AS g
LEFT JOIN :"a" AS a ON a.aid = g LEFT JOIN :"b" AS b ON b.aid = a.aid;

-- name: not_exists
SELECT * FROM generate_series(:first, :last, :step) AS g
WHERE NOT EXISTS (SELECT 1 FROM :"a" AS a JOIN :"b" AS b USING (aid) WHERE aid = g);

-- name: lateral
SELECT * FROM generate_series(:first, :last, :step) AS g
LEFT JOIN LATERAL (
  SELECT * FROM :"a" AS a JOIN :"b" AS b USING (aid) WHERE aid = g OFFSET 0) AS j ON true;
