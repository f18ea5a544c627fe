WITH scans AS (
    SELECT max(index_pages) FILTER (scan = 'index-only scan') AS index_only,
           max(index_pages) FILTER (scan = 'plain index scan') AS plain
    FROM reads
)
SELECT 'after an index-only scan the index''s pages are in the buffer pool' AS fact,
       index_only > 0 AS so
FROM scans
UNION ALL
SELECT 'an index-only scan brings as many of them there as a plain one', index_only = plain
FROM scans
