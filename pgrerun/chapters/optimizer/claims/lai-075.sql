-- Best is what no other method beats: of the others the one with the fewest instructions decides.
WITH own AS (
    SELECT method, instructions / (SELECT instructions FROM join_instructions
                                   WHERE query = 4 AND method = 'nested loop') AS ratio
    FROM join_instructions WHERE query = 4 AND method <> 'nested loop'
)
SELECT method AS part, ratio AS value, ratio = min(ratio) OVER () AS essential
FROM own ORDER BY method
