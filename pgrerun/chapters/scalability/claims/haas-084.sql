-- Of the server that the talk foretells, and of the commit before it. So far ahead is twice the next.
WITH asked AS (
    SELECT build LIKE '%-before-%' AS before, process_array, wal_insertion,
           greatest(wal_write, lock_table, commit_log, invalidations, any_other) AS others
    FROM divided_insertion
), compared AS (
    SELECT before, wal_insertion > greatest(process_array, others) AS insertion_first,
           process_array > greatest(wal_insertion, others) AS array_first,
           process_array >= 2 * greatest(wal_insertion, others) AS so_far_ahead
    FROM asked
), facts AS (
    SELECT 'once several sessions insert into the WAL, the process array''s lock is waited for most' AS fact,
           array_first AS so, true AS essential
    FROM compared WHERE NOT before
    UNION ALL SELECT 'it is waited for at least twice as often as the next', array_first AND so_far_ahead, true
    FROM compared WHERE NOT before
    UNION ALL SELECT 'before, the lock of the WAL''s insertion is waited for most', insertion_first, false
    FROM compared WHERE before
)
SELECT fact, CASE WHEN bool_and(so) THEN true WHEN NOT bool_or(so) THEN false END AS so, essential
FROM facts GROUP BY fact, essential ORDER BY essential DESC, fact DESC
