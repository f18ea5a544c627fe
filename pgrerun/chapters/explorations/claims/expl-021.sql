SELECT 'with a hundred times the tuples a lookup touches more pages' AS fact,
       arg_max(pages, tuples) > arg_min(pages, tuples) AS so
FROM point_plans WHERE attribute = 'unique2'
