WITH slides AS (
    FROM join_plans
    WHERE small = 100000 AND large = 1000000 AND of_small = 'unique1' AND of_large = 'unique1'
      AND multiplier = 1
)
SELECT 'the grouping by unique2 is the same whatever the memory' AS fact,
       count(DISTINCT plan) = 1 AS so, true AS essential
FROM grouping_plans WHERE state = 'never vacuumed'
UNION ALL
SELECT 'the costs of the join are the same whatever the memory',
       count(DISTINCT hash_cost) = 1 AND count(DISTINCT merge_cost) = 1, false
FROM slides
UNION ALL
SELECT 'so is the join', count(DISTINCT picked) = 1, false FROM slides
