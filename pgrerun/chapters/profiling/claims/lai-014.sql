-- In each profile that is printed, by cycles; the ten routines of each are.
SELECT 'first or second in the profile of the stage “' || stage || '”' AS fact, place <= 2 AS so
FROM (SELECT stage, routine, rank() OVER (PARTITION BY stage ORDER BY share DESC) AS place
      FROM printed.profiling_routines)
WHERE routine = 'NodeIsType'
