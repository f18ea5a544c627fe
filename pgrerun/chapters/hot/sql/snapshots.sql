-- A hundred rows on a page with room, updated or deleted beside an old snapshot.

-- name: versions
CREATE TABLE versions (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off);
INSERT INTO versions SELECT n, n FROM generate_series(1, 100) AS n;

-- name: update
UPDATE versions SET v = -v WHERE id <= 10;

-- name: index
CREATE INDEX versions_v ON versions (v);

-- name: is_marked
SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'versions_v'::regclass;

-- name: take_mark_away
UPDATE pg_index SET indcheckxmin = false WHERE indexrelid = 'versions_v'::regclass;

-- name: find
SELECT id FROM versions WHERE v = :value;

-- name: change
DELETE FROM versions WHERE id <= 50;
UPDATE versions SET v = -v WHERE id > 50;

-- name: cluster
CLUSTER versions USING versions_pkey;

-- name: vacuum_full
VACUUM FULL versions;

-- name: alter_type
ALTER TABLE versions ALTER v TYPE bigint;

-- name: truncate
TRUNCATE versions;

-- name: count
SELECT count(*) FROM versions;
