-- name: waits
-- what active backends wait for: run it again and again; CPU means that they run
SELECT coalesce(wait_event_type, 'CPU') AS type, wait_event, count(*)
FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid()
GROUP BY 1, 2 ORDER BY 3 DESC;

-- name: off_the_fast_path
-- relation locks that found no place on the fast path, by backend (PostgreSQL 9.2 and later)
SELECT pid, count(*) FILTER (WHERE fastpath) AS fast, count(*) FILTER (WHERE NOT fastpath) AS in_table
FROM pg_locks
WHERE locktype = 'relation' AND mode IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
GROUP BY pid ORDER BY in_table DESC;

-- name: commits_per_flush
-- PostgreSQL 18 and later; before, wal_sync of pg_stat_wal counts flushes from 14 on
SELECT (SELECT sum(xact_commit) FROM pg_stat_database)
       / nullif((SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'), 0) AS commits_per_flush;
