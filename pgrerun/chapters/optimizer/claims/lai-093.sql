SELECT 'an order can be declared, and an index scan then costs less' AS fact,
       coalesce(max(cost) FILTER (relation = 'declared to be in order')
                < max(cost) FILTER (relation = 'never analyzed'), false) AS so,
       true AS essential
FROM clustering WHERE layout = 'clustered'
UNION ALL
SELECT 'ANALYZE finds the order without being told', correlation > 0.99, false
FROM clustering WHERE layout = 'clustered' AND relation = 'analyzed'
