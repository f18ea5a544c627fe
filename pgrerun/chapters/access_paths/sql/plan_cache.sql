-- A prepared join of the jobs in one state, two of which are common and one rare.

-- name: jobs
CREATE TABLE jobs (id int, state int, filler char(84)) WITH (autovacuum_enabled = off);
-- one in a thousand is open (1), the others are done (0) or failed (2)
INSERT INTO jobs
SELECT n, CASE WHEN mod(n, 1000) = 0 THEN 1 ELSE 2 * mod(abs(hashint4(n)::bigint), 2) END, ''
FROM generate_series(1, :rows) AS n;
CREATE INDEX jobs_state ON jobs (state);
VACUUM (ANALYZE) jobs;

-- name: prepare
DEALLOCATE ALL;
PREPARE asked (int) AS SELECT count(abalance) FROM jobs JOIN accounts ON aid = id WHERE state = $1;

-- name: execute
EXECUTE asked (:state);

-- name: plans_made
SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE name = 'asked';
