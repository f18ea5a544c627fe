-- name: at_work
-- the backends of pgbench's clients, once they are at work
SELECT pid FROM pg_stat_activity
WHERE (query LIKE 'UPDATE counted%' OR query LIKE '%pg_advisory_xact_lock%')
  AND pid <> pg_backend_pid() AND datname = current_database();

-- name: waiting
-- what the views of 2012 say: whether a backend waits
SELECT count(*) FROM pg_stat_activity WHERE waiting;

-- name: lock_counts
-- views that tell how often a lightweight lock was taken
SELECT count(*) FROM pg_class WHERE relkind = 'v' AND relname ~ '^pg_(stat|statio)_.*lwlock';
