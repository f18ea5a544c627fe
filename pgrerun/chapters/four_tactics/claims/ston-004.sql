SELECT 'as many functions are compiled for one row as for many' AS fact,
       count(DISTINCT functions) = 1 AS so
FROM jit_functions WHERE query = 'd'
UNION ALL
SELECT 'something is compiled', min(functions) > 0 FROM jit_functions
