-- By how much the WAL of a vacuum grows with each bit that it sets, on tables of two sizes. A record
-- takes at least its header, of 32 bytes then.
WITH growth AS (
    SELECT server, (max(bytes) - min(bytes)) / (max(bits) - min(bits)) AS per_bit
    FROM logged_on_releases GROUP BY server
)
SELECT 'on 9.1 the WAL says nothing of the bits that a vacuum sets' AS fact, per_bit < 1 AS so,
       true AS essential
FROM growth WHERE server = '9.1'
UNION ALL
SELECT 'on 9.2 it has a record of each', per_bit >= 32, true FROM growth WHERE server = '9.2'
UNION ALL
SELECT 'today it has a record of each that is set or cleared', bool_and(records >= bits), false
FROM logged
UNION ALL
SELECT 'after crashes today''s map is right',
       NOT bool_or(wrong_visible > 0 OR wrong_frozen > 0 OR differing > 0), false
FROM crashes
