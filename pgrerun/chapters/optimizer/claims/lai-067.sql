SELECT 'on skewed values estimates are off by more than a factor of two' AS fact,
       max(error_factor) > 2 AS so, true AS essential
FROM interpolation WHERE parts = 0 AND attribute = 'skewed'
UNION ALL
SELECT 'on even values by less than a fiftieth', max(error_factor) < 1.02, false
FROM interpolation WHERE parts = 0 AND attribute = 'even'
