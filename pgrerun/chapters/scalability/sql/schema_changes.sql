-- name: other
CREATE TABLE scaling_other (LIKE scaling_accounts);

-- name: other_rolled_back
DO $$ BEGIN LOOP
    EXECUTE 'ALTER TABLE scaling_other ALTER bid SET STATISTICS ' || (100 * random())::int;
    ROLLBACK;
    PERFORM pg_sleep(0.001);
END LOOP; END $$;

-- name: other_committed
DO $$ BEGIN LOOP
    EXECUTE 'ALTER TABLE scaling_other ALTER bid SET STATISTICS ' || (100 * random())::int;
    COMMIT;
    PERFORM pg_sleep(0.001);
END LOOP; END $$;

-- name: accounts_committed
DO $$ BEGIN LOOP
    EXECUTE 'ALTER TABLE scaling_accounts ALTER bid SET STATISTICS ' || (100 * random())::int;
    COMMIT;
    PERFORM pg_sleep(0.001);
END LOOP; END $$;
