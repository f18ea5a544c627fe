-- The visibility map: a table of one tuple per page, a small one step by step, one that is crashed,
-- and one to skip pages of.

-- name: wide
CREATE UNLOGGED TABLE wide (filler text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER filler SET STORAGE PLAIN;

-- name: lengthen
-- What writes to an unlogged table alone commits without waiting for a flush, and until that has
-- come VACUUM can't hint its rows, so that no page is all-visible (seen on 9.1). A comment is logged.
INSERT INTO wide SELECT repeat('x', 8100) FROM generate_series(1, :pages);
COMMENT ON TABLE wide IS 'lengthened';
VACUUM (FREEZE) wide;

-- name: first_map_page
SELECT get_raw_page('wide', 'vm', 0);

-- name: wide_read
-- logged; when vacuum comes, all of its tuples are known to be committed
CREATE TABLE wide (filler text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
INSERT INTO wide SELECT repeat('x', 8000) FROM generate_series(1, :pages);
SELECT count(*) FROM wide;

-- name: vacuum_wide
VACUUM wide;

-- name: drop_wide
DROP TABLE wide;

-- name: small
CREATE TABLE small (id int PRIMARY KEY, v int, filler char(780))
  WITH (autovacuum_enabled = off, fillfactor = 80);
INSERT INTO small SELECT n, 0, '' FROM generate_series(1, 2000) AS n;

-- name: small_marked
SELECT all_visible, all_frozen FROM pg_visibility_map_summary('small');

-- name: vacuum_small
VACUUM small;

-- name: lock_row
SELECT * FROM small WHERE id = 1 FOR UPDATE;

-- name: update_row
UPDATE small SET v = 1 WHERE id = 1;

-- name: read_all
SELECT count(*) FROM small;

-- name: delete_row
DELETE FROM small WHERE id = 2000;

-- name: take_snapshot
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT 1;

-- name: update_and_vacuum
UPDATE small SET v = 2 WHERE id = 1;
VACUUM small;

-- name: crashed
CREATE TABLE crashed (id int PRIMARY KEY, v int NOT NULL, filler char(100))
  WITH (autovacuum_enabled = off, fillfactor = 90);
INSERT INTO crashed SELECT n, 0, '' FROM generate_series(1, 20000) AS n;
CREATE INDEX crashed_covering ON crashed (id, v);

-- name: churn_update
UPDATE crashed SET v = v + 1
WHERE id = ANY (ARRAY(SELECT (random() * 19999)::int + 1 FROM generate_series(1, 200)));

-- name: churn_vacuum
VACUUM (FREEZE) crashed;

-- name: churn_checkpoint
CHECKPOINT;

-- name: crashed_marked
SELECT (SELECT count(*) FROM crashed WHERE v > 0),
       (pg_visibility_map_summary('crashed')).all_visible,
       (SELECT count(*) FROM pg_check_visible('crashed')),
       (SELECT count(*) FROM pg_check_frozen('crashed'));

-- name: crashed_sums
SELECT count(*), sum(v) FROM crashed WHERE id > 0;

-- name: vacuum
VACUUM accounts;

-- name: vacuum_without_map
VACUUM (DISABLE_PAGE_SKIPPING) accounts;

-- name: sparse
CREATE TABLE sparse (id int, filler char(2500)) WITH (autovacuum_enabled = off, fillfactor = 40);
-- compressed, many would fit on a page; like this there is one, and room for its next version
ALTER TABLE sparse ALTER filler SET STORAGE PLAIN;
INSERT INTO sparse SELECT n, '' FROM generate_series(1, 2000) AS n;
VACUUM (FREEZE) sparse;

-- name: change_every
UPDATE sparse SET id = id WHERE (ctid::text::point)[0]::int % :every = 0;

-- name: vacuum_sparse
VACUUM sparse;

-- name: tell_sparse
VACUUM (VERBOSE) sparse;

-- name: tell_all_of_sparse
VACUUM (FREEZE, VERBOSE) sparse;

-- name: accessed_by_vacuum
-- Pages that vacuum has accessed, found in the pool or read; 18 counts bytes where 16 and 17 count
-- operations.
SELECT (sum(hits) + sum(coalesce((to_jsonb(s) ->> 'read_bytes')::numeric,
                                 reads * (to_jsonb(s) ->> 'op_bytes')::numeric, 0))
        / current_setting('block_size')::int)::bigint
FROM pg_stat_io AS s
WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'vacuum';

-- name: accessed
SELECT (heap_blks_read + heap_blks_hit)::bigint FROM pg_statio_all_tables
WHERE relid = :'relation'::text::regclass;
