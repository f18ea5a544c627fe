-- Experiment 2.

-- name: groups
SELECT :"attribute", count(*) FROM :"relation" GROUP BY :"attribute";

-- name: keep_the_groups
CREATE TEMP TABLE result AS
SELECT :"attribute", count(*) FROM :"relation" GROUP BY :"attribute";

-- name: drop_the_groups
DROP TABLE IF EXISTS result;
