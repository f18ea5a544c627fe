-- Reads run in the server, one after another.

-- name: lookups
DO $$ BEGIN FOR n IN 1..:accounts LOOP
    PERFORM abalance FROM accounts WHERE aid = n;
END LOOP; END $$;

-- name: into_the_pool
-- by the key, as a scan of a large table and a load go through a small ring of buffers
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT sum(abalance) FROM accounts WHERE aid > 0;

-- name: waited
-- milliseconds that backends of the database have waited for reads and for writes; pages read
SELECT blk_read_time, blk_write_time, blks_read::float
FROM pg_stat_database WHERE datname = current_database();

-- name: pool
SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers';
