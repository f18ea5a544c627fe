-- A lock that each record takes exclusively lets one session at a time insert into the WAL.
SELECT 'each record takes the one lock of all sessions exclusively, in ' || left(build, 3) AS fact,
       exclusively >= 0.99 * records AS so, build LIKE '9.2%' AS essential
FROM insertion_lock WHERE sessions > 1
UNION ALL SELECT 'sessions wait for it, in ' || left(build, 3), waits > 0, false
FROM insertion_lock WHERE sessions > 1
