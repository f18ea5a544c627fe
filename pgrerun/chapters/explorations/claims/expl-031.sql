WITH slides AS (
    FROM join_plans
    WHERE small = 100000 AND large = 1000000 AND of_small = 'unique1' AND of_large = 'unique1'
      AND multiplier = 1
)
SELECT 'the same join is picked whatever the memory, for all sizes and attributes of the grid' AS fact,
       bool_and(joins = 1) AS so, true AS essential
FROM (SELECT count(DISTINCT picked) AS joins FROM join_plans
      GROUP BY small, large, of_small, of_large, multiplier)
UNION ALL
SELECT 'the same join is picked whatever the memory, for the slides'' sizes',
       count(DISTINCT picked) = 1, true
FROM slides
UNION ALL
SELECT 'the hash join costs the same whatever the memory', count(DISTINCT hash_cost) = 1, false
FROM slides
