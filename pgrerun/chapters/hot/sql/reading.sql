-- Reads run in the server, one after another.

-- name: lookups
DO $$ BEGIN FOR n IN 1..:accounts LOOP
    PERFORM abalance FROM accounts WHERE aid = n;
END LOOP; END $$;

-- name: waited
-- milliseconds that backends of the database have waited for reads and for writes; pages read
SELECT blk_read_time, blk_write_time, blks_read::float
FROM pg_stat_database WHERE datname = current_database();

-- name: pool
SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers';
