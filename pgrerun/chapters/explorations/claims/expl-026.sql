SELECT 'two workers for the largest relation' AS fact,
       arg_max(workers, tuples)
           = (SELECT workers FROM printed.explorations_plans WHERE key = 'scan_large') AS so
FROM point_plans WHERE attribute = 'unique3'
UNION ALL
SELECT 'none for 100,000 tuples', workers = 0
FROM point_plans WHERE attribute = 'unique3' AND tuples = 100000
