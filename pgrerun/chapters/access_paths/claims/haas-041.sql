WITH grown AS (
    SELECT way, table_pages, index_pages,
           index_pages > lag(index_pages) OVER (PARTITION BY way ORDER BY columns) AS larger
    FROM widths
)
SELECT 'each further step of columns makes the index larger' AS fact, bool_and(larger) AS so,
       true AS essential
FROM grown
UNION ALL
SELECT 'an index can be larger than its table', bool_or(index_pages > table_pages), true FROM grown
UNION ALL
SELECT 'one that was built at once can', bool_or(index_pages > table_pages), false
FROM grown WHERE way = 'built at once'
