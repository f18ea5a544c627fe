-- Reads run in the server, one after another, so that no message's way counts.

-- name: scans
DO $$ BEGIN FOR n IN 1..:times LOOP
    PERFORM sum(abalance) FROM accounts;
END LOOP; END $$;

-- name: lookups
DO $$ DECLARE drawn int; BEGIN FOR n IN 1..:times LOOP
    drawn := floor(random() * :accounts)::int + 1;
    PERFORM abalance FROM accounts WHERE aid = drawn;
END LOOP; END $$;

-- name: waiting
-- milliseconds that backends of the database have spent reading blocks, and executing
SELECT blk_read_time, active_time FROM pg_stat_database WHERE datname = current_database();
