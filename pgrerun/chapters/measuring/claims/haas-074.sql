-- Contention of backends that flush is made, and nobody is asked where none was.
SELECT 'on ' || server || ' LWLOCK_STATS counts waits where no view tells of one' AS fact,
       CASE WHEN sum(waits) FILTER (instrument = 'views') > 0 THEN false
            WHEN sum(waits) FILTER (instrument = 'LWLOCK_STATS') > 0 THEN true END AS so
FROM lightweight_locks WHERE server <> 'the server under test' GROUP BY server ORDER BY server
