-- A lock that is only read while it is taken stays in the cache of each processor that waits for it.
SELECT 'on Itanium a process of 9.2 that waits for a spinlock reads it, and tries to take it only if it looks free' AS fact,
       spinning LIKE '(*(lock) ? 1 :%' AS so, true AS essential
FROM itanium_spinlock WHERE build = '9.2'
UNION ALL
SELECT 'in 9.1 it tries to take it each time', spinning NOT LIKE '%*(lock)%', true
FROM itanium_spinlock WHERE build = '9.1'
UNION ALL
SELECT 'the header of 9.2 names HP''s guide, and that of 9.1 doesn''t', bool_and(guide = (build = '9.2')), false
FROM itanium_spinlock
