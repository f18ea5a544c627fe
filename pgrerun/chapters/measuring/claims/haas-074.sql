-- Contention of backends that flush is made, so that where it is is known; nobody is asked where none was.
SELECT 'on ' || server || ' no view tells of a wait, and of those that LWLOCK_STATS counts most are for the lock under'
       || ' which the log is flushed (8, WALWriteLock)' AS fact,
       CASE WHEN sum(waits) FILTER (instrument = 'views') > 0 THEN false
            WHEN sum(waits) FILTER (instrument = 'LWLOCK_STATS') > 0
            THEN coalesce(sum(waits) FILTER (lock = 'lock 8'), 0) > 0.5 * sum(waits) END AS so
FROM lightweight_locks WHERE server <> 'the server under test' GROUP BY server ORDER BY server
