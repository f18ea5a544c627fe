-- Sorting: all tuples are skipped, so that nothing is sent. USING <# finds the operator classes
-- without sort support, which are made beforehand.

-- name: unsorted
CREATE TABLE unsorted (i int, d double precision, m numeric, t text, p text) WITH (autovacuum_enabled = off);
-- in front of the second text stand more bytes than an abbreviated key holds
INSERT INTO unsorted
SELECT hashint4(n), hashint4(n) / 1000.0::double precision, hashint4(n)::numeric / 1000, md5(n::text), 'the same bytes ' || md5(n::text)
FROM generate_series(1, :objects) AS n;
VACUUM (FREEZE, ANALYZE) unsorted;

-- name: session
SET work_mem = '1GB';
SET max_parallel_workers_per_gather = 0;
DROP COLLATION IF EXISTS sorted_by_system;
CREATE COLLATION sorted_by_system (provider = libc, locale = 'C.UTF-8');

-- name: not_sorted
SELECT FROM unsorted OFFSET 2000000000 LIMIT 1;

-- name: integer
SELECT FROM unsorted ORDER BY i OFFSET 2000000000 LIMIT 1;

-- name: integer_without
SELECT FROM unsorted ORDER BY i USING <# OFFSET 2000000000 LIMIT 1;

-- name: double
SELECT FROM unsorted ORDER BY d OFFSET 2000000000 LIMIT 1;

-- name: double_without
SELECT FROM unsorted ORDER BY d USING <# OFFSET 2000000000 LIMIT 1;

-- name: numeric
SELECT FROM unsorted ORDER BY m OFFSET 2000000000 LIMIT 1;

-- name: numeric_without
SELECT FROM unsorted ORDER BY m USING <# OFFSET 2000000000 LIMIT 1;

-- name: bytes
SELECT FROM unsorted ORDER BY t COLLATE "C" OFFSET 2000000000 LIMIT 1;

-- name: bytes_without
SELECT FROM unsorted ORDER BY t COLLATE "C" USING <# OFFSET 2000000000 LIMIT 1;

-- name: one_beginning
SELECT FROM unsorted ORDER BY p COLLATE "C" OFFSET 2000000000 LIMIT 1;

-- name: one_beginning_without
SELECT FROM unsorted ORDER BY p COLLATE "C" USING <# OFFSET 2000000000 LIMIT 1;

-- name: system_collation
SELECT FROM unsorted ORDER BY t COLLATE sorted_by_system OFFSET 2000000000 LIMIT 1;

-- name: system_collation_without
SELECT FROM unsorted ORDER BY t COLLATE sorted_by_system USING <# OFFSET 2000000000 LIMIT 1;
