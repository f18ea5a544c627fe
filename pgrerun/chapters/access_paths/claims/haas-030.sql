WITH steps AS (SELECT step, all_visible = expected AS so FROM bits)
SELECT 'vacuum sets the bit of every page that all can see' AS fact, bool_and(so) AS so,
       true AS essential
FROM steps WHERE step IN ('loaded', 'vacuumed', 'the snapshot gone, vacuumed')
UNION ALL
SELECT 'changing a tuple clears its page''s bit, even if it is rolled back', bool_and(so), true
FROM steps WHERE step IN ('one row updated', 'one row of another page deleted, rolled back')
UNION ALL
SELECT 'no bit is set while somebody may still need an older version', bool_and(so), true
FROM steps WHERE step = 'one row updated, vacuumed beside an old snapshot'
UNION ALL
SELECT 'reading and locking leave the bits alone', bool_and(so), false
FROM steps WHERE step IN ('one row locked', 'read')
