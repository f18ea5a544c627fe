-- name: bprime
-- the first tenth of the second large relation
CREATE TABLE :"relation" AS SELECT * FROM :"source" WHERE unique2 < :tuples;

-- name: drop
DROP TABLE IF EXISTS :"relation";

-- name: one_thread
SET threads TO 1;
