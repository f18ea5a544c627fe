-- Lookups and ranges of accounts by index-only scans, plain index scans and sequential scans.

-- name: bring_in
SELECT count(abalance) FROM :"relation" WHERE aid > 0;

-- name: cover
CREATE INDEX accounts_covering ON accounts (aid, abalance);

-- name: bring_in_part
-- One key in a hundred lies on every leaf, and to find it takes the pages above.
SELECT count((SELECT :"column" FROM accounts WHERE aid = key))
FROM generate_series(1, :last, 100) AS key;

-- name: uncover
DROP INDEX accounts_covering;

-- name: look_up
SELECT count((SELECT abalance FROM :"relation" WHERE aid = key))
FROM (SELECT floor(random() * :rows)::int + 1 AS key
      FROM generate_series(1, :lookups) OFFSET 0) AS keys;

-- name: lookups_under_way
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'pgbench' AND datname = current_database();

-- name: pages_read
SELECT heap_blks_read, idx_blks_read, pg_stat_get_db_blk_read_time(oid) / 1000
FROM pg_statio_user_tables, pg_database
WHERE datname = current_database() AND relid = :'relation'::text::regclass;

-- name: sum_range
SELECT count(abalance) FROM :"relation" WHERE aid BETWEEN :first AND :last;

-- name: unmark
-- rolled back: a deletion clears a page's bit all the same
DELETE FROM :"relation" WHERE ctid IN (
  SELECT format('(%s,1)', page)::tid FROM generate_series(0, :pages - 1) AS page
  WHERE mod(abs(hashint4(page::int)::bigint), 100) >= :percent);

-- name: vacuum
VACUUM :"relation";

-- name: drop_key
ALTER TABLE :"relation" DROP CONSTRAINT :"key";

-- name: update_some
UPDATE :"relation" SET abalance = abalance + 1
WHERE aid = ANY (ARRAY(SELECT floor(random() * :rows)::int + 1 FROM generate_series(1, :updates)));

-- name: visits
SELECT pg_stat_get_autovacuum_count(:'relation'::text::regclass);

-- name: update_at_random
CREATE TEMP TABLE drawn AS
SELECT DISTINCT floor(random() * :rows)::int + 1 AS aid FROM generate_series(1, :updates);
ANALYZE drawn;
UPDATE covered SET abalance = abalance + 1 FROM drawn WHERE covered.aid = drawn.aid;
DROP TABLE drawn;
