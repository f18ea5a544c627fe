WITH few AS (
    SELECT keys, max(pages) FILTER (way = 'index scan') < max(pages) FILTER (way = 'bitmap scan')
                     AS fewer,
           max(node) FILTER (way = 'either of both') = 'Index Scan' AS preferred
    FROM lists WHERE asked = 'the first few in order' GROUP BY keys
)
SELECT 'a plain index scan looks up a list of keys' AS fact, bool_and(node = 'Index Scan' AND by_index) AS so
FROM lists WHERE way = 'index scan'
UNION ALL
SELECT 'a plain index scan returns them in order, without a sort', NOT bool_or(sorts)
FROM lists WHERE way = 'index scan'
UNION ALL
SELECT 'for the first few a plain index scan touches fewer pages than a bitmap', bool_and(fewer)
FROM few
UNION ALL
SELECT 'for the first few the planner prefers the plain index scan', bool_and(preferred) FROM few
