-- By the index it is if the list is the scan's own condition, and not a filter of what it finds.
WITH few AS (
    SELECT keys, max(pages) FILTER (way = 'index scan') < max(pages) FILTER (way = 'bitmap scan')
                     AS fewer,
           max(node) FILTER (way = 'either of both') = 'Index Scan' AS preferred
    FROM lists_on_releases WHERE server = '9.2' AND asked = 'the first few in order' GROUP BY keys
)
SELECT 'on 9.1 a plain index scan looks up no list of keys' AS fact, NOT bool_or(by_index) AS so,
       true AS essential
FROM lists_on_releases WHERE server = '9.1' AND way = 'index scan'
UNION ALL
SELECT 'on 9.1 there is a bitmap scan for it', bool_and(node = 'Bitmap Heap Scan'), false
FROM lists_on_releases WHERE server = '9.1' AND way = 'bitmap scan'
UNION ALL
SELECT 'on 9.2 a plain index scan looks up a list of keys', bool_and(node = 'Index Scan' AND by_index),
       true
FROM lists_on_releases WHERE server = '9.2' AND way = 'index scan'
UNION ALL
SELECT 'there it returns them in order, without a sort', NOT bool_or(sorts), false
FROM lists_on_releases WHERE server = '9.2' AND way = 'index scan'
UNION ALL
SELECT 'there it touches fewer pages than a bitmap for the first few', bool_and(fewer), false FROM few
UNION ALL
SELECT 'there the planner prefers it for the first few', bool_and(preferred), false FROM few
