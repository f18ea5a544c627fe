WITH steps AS (
    SELECT max(COLUMNS(*)) FILTER (step = 'vacuumed on 9.1') AS "before_\0",
           max(COLUMNS(*)) FILTER (step = 'upgraded to 9.2') AS "upgraded_\0",
           max(COLUMNS(*)) FILTER (step = 'vacuumed on 9.2') AS "after_\0"
    FROM (SELECT step, map_pages, total, "rows", heap_fetches FROM upgraded)
)
SELECT 'on 9.1 the vacuumed table has a map, and after pg_upgrade to 9.2 it has none' AS fact,
       before_map_pages > 0 AND upgraded_map_pages = 0 AS so, true AS essential
FROM steps
UNION ALL
SELECT 'then an index-only scan looks up every row in the table',
       upgraded_heap_fetches = upgraded_rows, true
FROM steps
UNION ALL
SELECT 'after a vacuum the table has a map again, and the scan looks up none',
       after_map_pages > 0 AND after_heap_fetches = 0, true
FROM steps
UNION ALL
SELECT 'the answers are the same all along',
       before_total = upgraded_total AND upgraded_total = after_total, false
FROM steps
