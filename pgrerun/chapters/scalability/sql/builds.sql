-- name: counted
CREATE TABLE counted (aid int PRIMARY KEY, abalance int);

-- name: fill_counted
INSERT INTO counted SELECT n, 0 FROM generate_series(1, 10000) AS n;
VACUUM ANALYZE counted;

-- name: prepare
PREPARE lookup (int) AS SELECT abalance FROM counted WHERE aid = $1;

-- name: lookup
EXECUTE lookup (77);

-- name: dead
CREATE TABLE dead (id int PRIMARY KEY);

-- name: insert_dead
INSERT INTO dead VALUES (:id);

-- name: delete_dead
DELETE FROM dead WHERE id = :id;

-- name: scan_by_index
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN SELECT count(*) FROM dead WHERE id >= 0;

-- name: scan_dead
SELECT count(*) FROM dead WHERE id >= 0;
