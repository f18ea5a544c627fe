-- What the planner knows of the visibility map, and four tables for autovacuum.

-- name: tenth
SELECT sum(abalance) FROM scattered WHERE aid BETWEEN 1 AND :last;

-- name: claim_visible
SELECT pg_restore_relation_stats('schemaname', current_schema()::text, 'relname', 'scattered',
                                 'relallvisible', :pages::int);

-- name: claim_visible_by_hand
UPDATE pg_class SET relallvisible = :pages WHERE oid = 'scattered'::regclass;

-- name: growing
CREATE TABLE growing (id int, v int, filler char(84));
INSERT INTO growing SELECT n, 0, '' FROM generate_series(1, 20000) AS n;

-- name: growing_before
CREATE TABLE growing_before (id int, v int, filler char(84))
  WITH (autovacuum_vacuum_insert_threshold = -1);
INSERT INTO growing_before SELECT n, 0, '' FROM generate_series(1, 20000) AS n;

-- name: changed
CREATE TABLE changed (id int, v int, filler char(84));
INSERT INTO changed SELECT n, 0, '' FROM generate_series(1, 20000) AS n;
CREATE INDEX ON changed (id);
-- else the insertions are reported after the vacuum, and count for a reason to vacuum again
SELECT pg_stat_force_next_flush();
VACUUM (ANALYZE) changed;
UPDATE changed SET v = 1 WHERE id % 20 = 0;
-- autovacuum goes by what has been reported
SELECT pg_stat_force_next_flush();

-- name: half_changed
CREATE TABLE half_changed (id int, v int, filler char(84));
INSERT INTO half_changed SELECT n, 0, '' FROM generate_series(1, 20000) AS n;
UPDATE half_changed SET v = 1 WHERE id % 2 = 0;
SELECT pg_stat_force_next_flush();

-- name: workers
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker';

-- name: state
SELECT (pg_visibility_map_summary(:'relation'::text::regclass)).all_visible,
       pg_stat_get_autovacuum_count(:'relation'::text::regclass);
