-- name: calls
SELECT build, max(instructions) AS instructions,
       sum(calls) FILTER (function = 'LWLockAcquire') AS "lightweight locks",
       coalesce(sum(calls) FILTER (function = 'LWLockAcquire' AND called_by = 'SIGetDataEntries'), 0)
           AS "of them for messages",
       coalesce(sum(calls) FILTER (function = 'LWLockAcquire' AND called_by = 'GetSnapshotData'), 0)
           AS "for the snapshot",
       coalesce(sum(calls) FILTER (function = 'hash_search_with_hash_value'
                                   AND called_by IN ('LockAcquireExtended', 'LockAcquire')), 0)
           AS "searches of the lock table"
FROM lookup_calls GROUP BY build ORDER BY build = 'today', build;

-- name: questions
SELECT build, commits, questions AS "questions for each deleted tuple" FROM dead_tuples;
