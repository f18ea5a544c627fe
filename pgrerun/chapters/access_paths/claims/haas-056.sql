WITH ways AS (
    SELECT max(COLUMNS(*)) FILTER (way = 'grown in random order') AS "grown_\0",
           max(COLUMNS(*)) FILTER (way = 'built at once') AS "built_\0"
    FROM (SELECT way, density, fragmentation, "range" FROM btrees)
)
SELECT 'a lookup visits as many pages however the tree was made' AS fact,
       count(DISTINCT lookup) = 1 AS so, true AS essential
FROM btrees
UNION ALL
SELECT 'a tree grown in random order is as full as one built at once',
       grown_density > built_density - 5, false
FROM ways
UNION ALL
SELECT 'a range visits as few pages in it', grown_range <= 1.1 * built_range, false FROM ways
UNION ALL
SELECT 'its leaves lie in the order of the keys', grown_fragmentation < 5, false FROM ways
