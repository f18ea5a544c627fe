-- On servers of 2007, which have no DO.

-- name: lookup
SELECT abalance FROM accounts WHERE aid = 1;

-- name: old_transaction
-- prepared, it is under way without a session; a change gives it a number, which makes it old
START TRANSACTION;
UPDATE branches SET bbalance = bbalance + 1 WHERE bid = 1;
PREPARE TRANSACTION 'old';

-- name: drawn_accounts
-- as many as there are, each drawn as pgbench draws
CREATE OR REPLACE FUNCTION pg_temp.look_up_accounts() RETURNS void LANGUAGE plpgsql AS $$
DECLARE drawn int;
BEGIN
    FOR n IN 1..:accounts LOOP
        drawn := trunc(random() * :accounts) + 1;
        PERFORM abalance FROM accounts WHERE aid = drawn;
    END LOOP;
END $$;
SELECT pg_temp.look_up_accounts();
