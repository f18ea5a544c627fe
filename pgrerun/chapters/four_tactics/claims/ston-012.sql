SELECT printf('query %s costs more CPU time compiled', query) AS fact, dc > ingres AS so
FROM printed.four_tactics_compiled_cpu_derived WHERE size = 1
UNION ALL
SELECT printf('query %s by what is printed, as far as its rounded times tell', query), within_rounding
FROM printed.four_tactics_compiled_cpu_derived WHERE size = 1
ORDER BY fact
