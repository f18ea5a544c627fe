-- What may start a checkpoint.

-- name: checkpoint
CHECKPOINT;

-- name: create_database_copying_files
CREATE DATABASE copied STRATEGY file_copy;

-- name: create_database
CREATE DATABASE logged_copy;

-- name: drop_database
DROP DATABASE IF EXISTS logged_copy;

-- name: base_backup
SELECT pg_backup_start('b', true);
SELECT pg_backup_stop(false);

-- name: base_backup_before_15
SELECT pg_start_backup('b', true, false);
SELECT pg_stop_backup(false, false);

-- name: write_wal
-- 40 MB: more than max_wal_size then allows between two checkpoints.
CREATE TABLE logged AS SELECT i, repeat('x', 1000) FROM generate_series(1, 40000) AS i;

-- name: drop_table
DROP TABLE logged;
