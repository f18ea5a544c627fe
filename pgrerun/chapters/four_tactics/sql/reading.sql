-- name: index
CREATE INDEX IF NOT EXISTS parts_qoh ON parts (qoh);

-- name: evict
SELECT pg_buffercache_evict_relation('parts'), pg_buffercache_evict_relation('parts_qoh');

-- name: sequential_only
-- or the planner answers the scan from the index alone, which has a tenth of the pages
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;

-- name: scan
SELECT count(*) FROM parts WHERE qoh < 50;

-- name: bitmap_only
SET enable_seqscan = off;
SET enable_bitmapscan = on;

-- name: scattered
SELECT count(weight) FROM parts WHERE qoh = 7;

-- name: not_ahead
SET effective_io_concurrency = 0;

-- name: nested_loop_only
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;

-- name: query_f
SELECT p.qoh, q.qoh FROM :"relation" AS p, :"relation" AS q WHERE p.pnum = q.pnum;
