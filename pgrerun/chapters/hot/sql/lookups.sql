-- On servers of 2007, which have no DO.

-- name: lookup
SELECT abalance FROM accounts WHERE aid = 1;

-- name: old_transaction
-- prepared, it is under way without a session; a change gives it a number, which makes it old
START TRANSACTION;
UPDATE branches SET bbalance = bbalance + 1 WHERE bid = 1;
PREPARE TRANSACTION 'old';

-- name: each_account
-- once, in an order without a pattern: step is a prime that their number lacks
CREATE OR REPLACE FUNCTION pg_temp.look_up_each_account() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 1..:accounts LOOP
        PERFORM abalance FROM accounts WHERE aid = (n::bigint * :step % :accounts + 1)::int;
    END LOOP;
END $$;
SELECT pg_temp.look_up_each_account();
