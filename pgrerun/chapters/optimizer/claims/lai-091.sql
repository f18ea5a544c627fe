-- The same, to a twentieth.
WITH costs AS (
    SELECT relation, max(cost) FILTER (layout = 'clustered') AS clustered,
           max(cost) FILTER (layout = 'not clustered') AS shuffled
    FROM clustering GROUP BY relation
)
SELECT format('once analyzed, a range costs the same in a clustered relation ({:.0f}) as in a shuffled one ({:.0f})',
              clustered, shuffled) AS fact,
       clustered / shuffled BETWEEN 1 / 1.05 AND 1.05 AS so, true AS essential
FROM costs WHERE relation = 'analyzed'
UNION ALL
SELECT 'it does before it is analyzed', clustered / shuffled BETWEEN 1 / 1.05 AND 1.05, false
FROM costs WHERE relation = 'never analyzed'
