-- A queue of jobs: rows come in, are updated, and go.

-- name: jobs
CREATE TABLE jobs (id int PRIMARY KEY, state int NOT NULL, pad text)
    WITH (autovacuum_enabled = off, fillfactor = :fillfactor);
INSERT INTO jobs SELECT n, 0, repeat('x', 84) FROM generate_series(1, :jobs) AS n;

-- name: no_hot
CREATE INDEX ON jobs (state) WHERE state IS NULL;

-- name: job
BEGIN; INSERT INTO jobs VALUES (:n + :jobs, 0, repeat('x', 84)); COMMIT;
BEGIN; UPDATE jobs SET state = 1 WHERE id = :n; COMMIT;
BEGIN; UPDATE jobs SET state = 2 WHERE id = :n; COMMIT;
BEGIN; DELETE FROM jobs WHERE id = :n; COMMIT;

-- name: cluster
CLUSTER jobs USING jobs_pkey;
