SELECT 'fewer cycles with the change “' || label || '”' AS fact,
       cycles < lag(cycles) OVER () AS so
FROM (FROM printed.profiling_totals_derived WHERE gain_in_all IS NOT NULL)
QUALIFY lag(cycles) OVER () IS NOT NULL
