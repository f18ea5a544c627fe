WITH times AS (
    SELECT 'CPU' AS what, size, ingres, dc FROM printed.four_tactics_compiled_cpu
    UNION ALL SELECT 'response', size, ingres, dc FROM printed.four_tactics_compiled_wall
)
SELECT 'no short command changes its ' || what || ' time' AS fact,
       bool_and(ingres / dc BETWEEN 1 / 1.05 AND 1.05) AS so
FROM times WHERE size <= 1 GROUP BY what
UNION ALL
SELECT printf('long ones gain %g to %g %% of %s time', max(low), max(high), what),
       sum(ingres) / sum(dc) BETWEEN 1 + max(low) / 100 AND 1 + max(high) / 100
FROM times, printed.four_tactics_conclusions AS c
WHERE size = 3360 AND c.key = 'DC' GROUP BY what
ORDER BY fact
