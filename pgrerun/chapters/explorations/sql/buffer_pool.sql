-- Experiment 1. miltup1 is read, after something has happened to miltup2.

-- name: settle
-- Free the space of the last update, and write every dirty page.
VACUUM miltup2;
CHECKPOINT;

-- name: rewrite
-- As it was loaded: of the updates after it every other one goes where the one before it was.
VACUUM FULL miltup2;

-- name: scan
-- Reads the heap from end to end: counting tuples could be answered from the key's index alone.
SELECT sum(unique1) FROM :"relation";

-- name: after_a_read
SELECT sum(unique1) FROM miltup2;

-- name: after_an_update
UPDATE miltup2 SET string4 = 'data overwritten exp1 round 1';

-- name: after_an_update_and_a_checkpoint
UPDATE miltup2 SET string4 = 'data overwritten exp1 round 1';
CHECKPOINT;

-- name: vacuum
VACUUM miltup2;

-- name: checkpoint
CHECKPOINT;

-- name: dirty_pages
-- Of the updated relation and its key.
SELECT count(*)
FROM pg_buffercache
WHERE isdirty
  AND relfilenode IN (pg_relation_filenode('miltup2'), pg_relation_filenode('miltup2_pkey'));

-- name: pages_left
-- Of the heap of the relation that was read.
SELECT count(*)
FROM pg_buffercache
WHERE relfilenode = pg_relation_filenode('miltup1') AND relforknumber = 0;

-- name: other_relation
-- As large as miltup0, to take its place in the pool.
CREATE TABLE :"relation" AS SELECT * FROM miltup0;

-- name: vacuum_other
VACUUM :"relation";
