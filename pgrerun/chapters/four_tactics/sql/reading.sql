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

-- name: reads
SELECT sum(reads)::bigint, sum(read_time) FROM pg_stat_io WHERE object = 'relation';

-- name: forget
-- a relation and its indexes leave the pool; their files are told, for the kernel's cache
SELECT pg_relation_filepath(found.oid)
FROM (SELECT indexrelid AS oid FROM pg_index WHERE indrelid = :'relation'::regclass
      UNION ALL SELECT :'relation'::regclass) AS found,
    LATERAL pg_buffercache_evict_relation(found.oid::regclass) AS evicted;
