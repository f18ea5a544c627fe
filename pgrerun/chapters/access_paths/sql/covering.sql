-- Indexes over columns of accounts, and what a range of keys touches.

-- name: indexes
-- made one after another, and dropped in between
CREATE INDEX sized ON covered (aid);
CREATE INDEX sized ON covered (aid, abalance);
CREATE INDEX sized ON covered (aid) INCLUDE (abalance);
CREATE INDEX sized ON covered (aid, bid, abalance);

-- name: entry_length
SELECT max(itemlen) FROM bt_page_items('sized', 1) WHERE itemoffset > 1;

-- name: drop_index
DROP INDEX sized;

-- name: wide_keys
-- so many columns of 8 bytes
DO $$ BEGIN EXECUTE (
  SELECT 'CREATE UNLOGGED TABLE wide_keys (' || string_agg('c' || n || ' bigint', ', ' ORDER BY n)
         || ') WITH (autovacuum_enabled = off)'
  FROM generate_series(1, :columns) AS n); END $$;

-- name: wide_index
DO $$ BEGIN EXECUTE (
  SELECT 'CREATE INDEX wide_index ON wide_keys (' || string_agg('c' || n, ', ' ORDER BY n) || ')'
  FROM generate_series(1, :columns) AS n); END $$;

-- name: wide_rows
-- the first column in random order, the others alike
DO $$ BEGIN EXECUTE (
  SELECT 'INSERT INTO wide_keys SELECT hashint8(n)::bigint * 65536 + n'
         || repeat(', n', :columns - 1)
         || ' FROM generate_series(1, ' || :rows || ') AS n'); END $$;

-- name: vacuum_wide_keys
VACUUM (ANALYZE) wide_keys;

-- name: count_last
-- which takes finding all columns before it
SELECT count(:"last") FROM wide_keys;

-- name: drop_wide_keys
DROP TABLE wide_keys;

-- name: range
SELECT sum(abalance) FROM covered WHERE aid BETWEEN 15001 AND 16000;

-- name: unmarked
SELECT count(*) FROM covered JOIN pg_visibility_map('covered'::text::regclass) AS map
ON map.blkno = (covered.ctid::text::point)[0]
WHERE aid BETWEEN 15001 AND 16000 AND NOT all_visible;

-- name: empty_map
SELECT pg_truncate_visibility_map('covered'::text::regclass);

-- name: vacuum
VACUUM covered;

-- name: total
SELECT sum(aid + abalance) FROM covered WHERE aid > 0;
