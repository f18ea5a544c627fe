-- What a scan and the index find, where the server didn't end or meet an error before.
WITH afterwards AS (
    SELECT *, ended OR error <> '' AS failed,
           coalesce(scanned = committed AND found = committed AND missed = 0, false) AS right_
    FROM vacuum_full_of_before
)
SELECT 'after the VACUUM FULL of before HOT an index misses rows, or the server fails' AS fact,
       NOT bool_and(right_) AS so, true AS essential
FROM afterwards WHERE server <> 'hot'
UNION ALL
SELECT 'after HOT''s own VACUUM FULL scan and index find every row', bool_and(right_), true
FROM afterwards WHERE server = 'hot'
UNION ALL
SELECT 'without assertions rows are missing from the index', bool_or(coalesce(missed > 0, false)),
       false
FROM afterwards WHERE server <> 'hot' AND NOT assertions
UNION ALL
SELECT 'with assertions the server fails', bool_or(failed), false
FROM afterwards WHERE server <> 'hot' AND assertions
