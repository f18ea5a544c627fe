WITH gains AS (
    SELECT 'CPU time' AS what, key, speed_up FROM printed.four_tactics_compiled_cpu_derived
    UNION ALL SELECT 'response time', key, speed_up FROM printed.four_tactics_compiled_wall_derived
)
SELECT printf('query %s gains %g %% and more of its %s', gains.key[1:1], c.low, what) AS fact,
       speed_up >= 1 + c.low / 100 AS so, what = 'CPU time' AS essential
FROM gains, printed.four_tactics_conclusions AS c
WHERE c.key = 'DC' AND gains.key IN ('d_3360', 'e_3360')
ORDER BY what, gains.key
