-- name: guarded
CREATE TABLE scaling_guarded (id int);

-- name: read
SELECT * FROM scaling_guarded;

-- name: write
INSERT INTO scaling_guarded VALUES (1);

-- name: alter
ALTER TABLE scaling_guarded ADD COLUMN other int;

-- name: drop
DROP TABLE scaling_guarded;

-- name: on_relation
SELECT mode, granted, fastpath
FROM pg_locks
WHERE relation = 'scaling_guarded'::regclass AND pid <> pg_backend_pid()
ORDER BY mode, granted;

-- name: indexed
CREATE TABLE scaling_indexed (id int);

-- name: write_indexed
INSERT INTO scaling_indexed VALUES (1);

-- name: create_index
CREATE INDEX CONCURRENTLY ON scaling_indexed (id);

-- name: virtual_transaction
SELECT fastpath FROM pg_locks WHERE locktype = 'virtualxid' AND pid = :pid AND granted;

-- name: partitioned
CREATE TABLE scaling_parts (id int) PARTITION BY RANGE (id);

-- name: partition
CREATE TABLE :"partition" PARTITION OF scaling_parts FOR VALUES FROM (:low) TO (:high);

-- name: weak_locks
LOCK TABLE scaling_parts IN ACCESS SHARE MODE;

-- name: strong_locks
LOCK TABLE scaling_parts IN SHARE MODE;

-- name: share_on_fast_path
SELECT avg(fastpath::int)::float8
FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation <> 'pg_locks'::regclass;

-- name: loop
SELECT count(CASE WHEN pg_backend_pid() > 0 THEN pg_backend_pid() END)
FROM generate_series(1, :loops);

-- name: lock_loop
SELECT count(CASE WHEN pg_try_advisory_lock_shared(:key) THEN pg_advisory_unlock_shared(:key) END)
FROM generate_series(1, :loops);
