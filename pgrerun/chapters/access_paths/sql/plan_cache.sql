-- A prepared query on a column with one common value and one rare.

-- name: jobs
CREATE TABLE jobs (id int, done int, filler char(84)) WITH (autovacuum_enabled = off);
-- one in a thousand is open (1), the others are finished (0)
INSERT INTO jobs SELECT n, CASE WHEN mod(n, 1000) = 0 THEN 1 ELSE 0 END, ''
FROM generate_series(1, :rows) AS n;
-- the open jobs are few, and only they are worth an index; a plan for any value can't use it
CREATE INDEX jobs_open ON jobs (id) WHERE done = 1;
VACUUM (ANALYZE) jobs;

-- name: prepare
DEALLOCATE ALL;
PREPARE asked (int) AS SELECT count(filler) FROM jobs WHERE done = $1;

-- name: execute
EXECUTE asked (:done);

-- name: plans_made
SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE name = 'asked';
