-- name: calls
SELECT build, max(instructions) AS instructions,
       sum(calls) FILTER (function = 'LWLockAcquire') AS "lightweight locks",
       coalesce(sum(calls) FILTER (function = 'LWLockAcquire' AND called_by = 'SIGetDataEntries'), 0)
           AS "of them for messages",
       coalesce(sum(calls) FILTER (function = 'LWLockAcquire' AND called_by = 'GetSnapshotData'), 0)
           AS "for the snapshot",
       coalesce(sum(calls) FILTER (function = 'hash_search_with_hash_value'
                                   AND called_by IN ('SetupLockInTable', 'LockAcquire',
                                                     'LockAcquireExtended')), 0)
           AS "searches of the lock table"
FROM lookup_calls GROUP BY build ORDER BY build = 'today', build;

-- name: questions
SELECT build, commits, questions AS "questions for each deleted tuple" FROM dead_tuples;

-- name: writers
SELECT left(build, 3) AS "release", accounts, round(median(wal_insertion), 1) AS "the WAL's insertion",
       round(median(process_array), 1) AS "the process array", round(median(lock_table), 1) AS "the lock table",
       round(median(commit_log), 1) AS "the commit log", round(median(any_other), 1) AS "any other"
FROM writer_contention GROUP BY build, accounts ORDER BY build, accounts;

-- name: divided
SELECT CASE WHEN build LIKE '%-before-%' THEN 'one session at a time inserts' ELSE 'several insert' END AS "commit",
       round(median(wal_insertion), 1) AS "the WAL's insertion", round(median(process_array), 1) AS "the process array",
       round(median(lock_table), 1) AS "the lock table", round(median(commit_log), 1) AS "the commit log",
       round(median(any_other), 1) AS "any other"
FROM divided_insertion GROUP BY build ORDER BY build LIKE '%-before-%' DESC;
