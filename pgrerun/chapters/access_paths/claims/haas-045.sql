SELECT 'EXPLAIN names an index-only scan' AS fact,
       bool_and((node = 'Index Only Scan') = (scan LIKE 'index-only scan%')) AS so
FROM reads
UNION ALL
SELECT 'EXPLAIN counts no heap fetches where all pages are all-visible', heap_fetches = 0
FROM reads WHERE scan = 'index-only scan'
UNION ALL
SELECT 'EXPLAIN counts a heap fetch for each row on the other pages where half are all-visible',
       heap_fetches = unmarked AND unmarked BETWEEN 1 AND "rows" - 1
FROM reads WHERE scan LIKE '%half of the pages%'
UNION ALL
SELECT 'EXPLAIN counts a heap fetch for every row where no page is all-visible',
       heap_fetches = "rows"
FROM reads WHERE scan LIKE '%no page marked%'
