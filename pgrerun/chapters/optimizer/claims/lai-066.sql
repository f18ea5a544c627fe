SELECT 'on even values every estimate is right to a row' AS fact,
       max(abs(expected - actual)) <= 1 AS so, true AS essential
FROM interpolation WHERE parts = 0 AND attribute = 'even'
UNION ALL
SELECT 'the estimates are those of the equations, to a row',
       max(abs(expected - greatest(equation, 1))) <= 1, false
FROM interpolation WHERE parts = 0
