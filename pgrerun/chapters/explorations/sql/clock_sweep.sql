-- Which pages stay in the pool.

-- name: one_page_a_row
-- Stored plain: a page a row, whatever could be compressed.
CREATE TABLE :"relation" (i int, filler text);
ALTER TABLE :"relation" ALTER filler SET STORAGE PLAIN;
INSERT INTO :"relation" SELECT i, repeat('x', 7900) FROM generate_series(1, :pages) AS i;
VACUUM (ANALYZE) :"relation";

-- name: read
SELECT count(*) FROM :"relation";

-- name: large_scan
-- One scan, so one ring.
DECLARE flood NO SCROLL CURSOR FOR SELECT i FROM large;

-- name: large_scan_on
MOVE FORWARD :pages IN flood;

-- name: kept
SELECT count(*), coalesce(avg(usagecount), 0)::float
FROM pg_buffercache
WHERE relfilenode = pg_relation_filenode(:'relation') AND relforknumber = 0;

-- name: buffers
SELECT relfilenode::bigint, relforknumber, relblocknumber, usagecount
FROM pg_buffercache
ORDER BY bufferid;

-- name: files
SELECT pg_relation_filenode(oid)::bigint, relname
FROM pg_class
WHERE pg_relation_filenode(oid) IS NOT NULL;

-- name: settings
-- Those that could choose a strategy of replacement.
SELECT name
FROM pg_settings
WHERE name ~ '(evict|replacement|victim|clock|lru_policy)'
ORDER BY name;
