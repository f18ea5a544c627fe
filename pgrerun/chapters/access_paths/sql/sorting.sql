-- Sorting: all tuples are skipped, so that nothing is sent. USING <# finds the operator classes
-- without sort support, which are made beforehand.

-- name: unsorted
CREATE TABLE unsorted (i int, d double precision, m numeric, t text, p text) WITH (autovacuum_enabled = off);
-- in front of the second text stand more bytes than an abbreviated key holds
INSERT INTO unsorted
SELECT hashint4(n), hashint4(n) / 1000.0::double precision, hashint4(n)::numeric / 1000, md5(n::text), 'the same bytes ' || md5(n::text)
FROM generate_series(1, :objects) AS n;
VACUUM (FREEZE, ANALYZE) unsorted;

-- name: collation
DROP COLLATION IF EXISTS sorted_by_system;
CREATE COLLATION sorted_by_system (provider = libc, locale = 'C.UTF-8');

-- name: not_sorted
SELECT 1 FROM unsorted OFFSET 2000000000 LIMIT 1;

-- name: integer
SELECT 1 FROM unsorted ORDER BY i OFFSET 2000000000 LIMIT 1;

-- name: integer_without
SELECT 1 FROM unsorted ORDER BY i USING <# OFFSET 2000000000 LIMIT 1;

-- name: double
SELECT 1 FROM unsorted ORDER BY d OFFSET 2000000000 LIMIT 1;

-- name: double_without
SELECT 1 FROM unsorted ORDER BY d USING <# OFFSET 2000000000 LIMIT 1;

-- name: numeric
SELECT 1 FROM unsorted ORDER BY m OFFSET 2000000000 LIMIT 1;

-- name: numeric_without
SELECT 1 FROM unsorted ORDER BY m USING <# OFFSET 2000000000 LIMIT 1;

-- name: bytes
SELECT 1 FROM unsorted ORDER BY t COLLATE "C" OFFSET 2000000000 LIMIT 1;

-- name: bytes_without
SELECT 1 FROM unsorted ORDER BY t COLLATE "C" USING <# OFFSET 2000000000 LIMIT 1;

-- name: one_beginning
SELECT 1 FROM unsorted ORDER BY p COLLATE "C" OFFSET 2000000000 LIMIT 1;

-- name: one_beginning_without
SELECT 1 FROM unsorted ORDER BY p COLLATE "C" USING <# OFFSET 2000000000 LIMIT 1;

-- name: system_collation
SELECT 1 FROM unsorted ORDER BY t COLLATE sorted_by_system OFFSET 2000000000 LIMIT 1;

-- name: system_collation_without
SELECT 1 FROM unsorted ORDER BY t COLLATE sorted_by_system USING <# OFFSET 2000000000 LIMIT 1;
