WITH touched AS (
    SELECT max(pages) FILTER (query = 'q20') AS scalar, max(pages) FILTER (query = 'q23') AS by_index,
           max(pages) FILTER (query = 'q21') AS grouped,
           max(pages) FILTER (query = 'q24') AS grouped_by_index
    FROM pages_touched
)
SELECT 'an index saves MIN no page' AS fact, by_index >= scalar AS so, by_index < scalar AS opposite
FROM touched
UNION ALL
SELECT 'MIN by group touches more pages with an index', grouped_by_index > grouped,
       grouped_by_index < grouped
FROM touched
