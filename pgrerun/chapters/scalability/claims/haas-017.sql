-- One of the big ones is waited for at least as often as any lock of which the talk says nothing.
SELECT 'the commit log''s lock is waited for, and no less often than any lock that the talk doesn''t name, in ' || left(build, 3) AS fact,
       max(waits) FILTER (lock = 'CLogControlLock') > 0
       AND max(waits) FILTER (lock = 'CLogControlLock') >= max(waits) FILTER (lock = 'any other') AS so,
       build LIKE '9.1%' AS essential
FROM writer_locks GROUP BY build ORDER BY build
