WITH scans AS (
    SELECT max(table_pages) FILTER (scan = 'index-only scan') AS index_only,
           max(table_pages) FILTER (scan = 'plain index scan') AS plain,
           max(table_pages) FILTER (scan LIKE '%no page marked%') AS unmarked
    FROM reads
)
SELECT 'on a vacuumed table an index-only scan touches no page of it' AS fact,
       index_only = 0 AS so
FROM scans
UNION ALL
SELECT 'a plain index scan touches pages of the table', plain > 0 FROM scans
UNION ALL
SELECT 'without all-visible pages an index-only scan touches as many', unmarked = plain FROM scans
