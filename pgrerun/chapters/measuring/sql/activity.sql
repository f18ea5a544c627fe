-- name: updating
-- the backends of pgbench's clients, once they are at work
SELECT pid FROM pg_stat_activity
WHERE query LIKE 'UPDATE counted%' AND pid <> pg_backend_pid() AND datname = current_database();

-- name: lightweight_locks
SELECT count(*) FROM pg_wait_events WHERE type = 'LWLock';

-- name: spins
SELECT count(*) FROM pg_wait_events WHERE name = 'SpinDelay';

-- name: lock_counts
SELECT count(*) FROM pg_class WHERE relkind = 'v' AND relname ~ '^pg_(stat|statio)_.*lwlock';
