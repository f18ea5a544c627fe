-- name: lookups
SELECT blks_hit + blks_read FROM pg_stat_slru WHERE name IN ('transaction', 'Xact');

-- name: buffers
SELECT current_setting('shared_buffers'), setting::int * 8
FROM pg_settings
WHERE name = 'transaction_buffers';

-- name: fresh
CREATE TABLE scaling_fresh (id int PRIMARY KEY);

-- name: insert_fresh
-- a transaction for each tuple; hints need flushed commits, and the last one is waited for
SET synchronous_commit = off;
DO $$ BEGIN FOR i IN 1..:tuples LOOP INSERT INTO scaling_fresh VALUES (i); COMMIT; END LOOP; END $$;
SET synchronous_commit = on;
CREATE TEMP TABLE flushed AS SELECT 1;

-- name: prepare_index_scan
-- EXPLAIN asks for the tuples of the catalogs, so that the scan needn't
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
EXPLAIN SELECT count(*) FROM scaling_fresh WHERE id > 0;

-- name: index_scan
SELECT count(*) FROM scaling_fresh WHERE id > 0;

-- name: status
SELECT pg_xact_status(:'transaction'::xid8);

-- name: asking
CREATE TABLE asking (scan int, page int, PRIMARY KEY (scan, page));

-- name: fill_asking
INSERT INTO asking
SELECT scan - 1, page
FROM generate_series(1, :scans) AS scan, generate_series(1, :pages) AS page;

-- name: prepare_asking
-- EXPLAIN asks for the tuples of the catalogs, so that the scans needn't
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN SELECT page FROM asking WHERE scan = 0 AND page > 0 ORDER BY page;

-- name: ask
SELECT page FROM asking WHERE scan = :scan AND page = :page;

-- name: ask_forwards
SELECT page FROM asking WHERE scan = :scan AND page > 0 ORDER BY page;

-- name: ask_backwards
SELECT page FROM asking WHERE scan = :scan AND page > 0 ORDER BY page DESC;

-- name: file
SELECT pg_relation_filepath(:'relation');

-- name: read_all
-- the pages of a relation and of its key, as they are: no row is looked at, and gets a hint
SELECT count(get_raw_page(relname::text, page))
FROM (SELECT relname, generate_series(0, (pg_relation_size(oid) / 8192)::int - 1) AS page
      FROM pg_class WHERE relname IN (:'relation', :'relation' || '_pkey')) AS pages;

-- name: pages_of_the_pool
SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers';
