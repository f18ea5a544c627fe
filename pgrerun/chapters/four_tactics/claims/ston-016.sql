WITH gains AS (
    SELECT 'response' AS what, key, speed_up FROM printed.four_tactics_compiled_wall_derived
    UNION ALL SELECT 'CPU', key, speed_up FROM printed.four_tactics_compiled_cpu_derived
)
SELECT 'd gains more ' || what || ' time than c, and c more than b' AS fact,
       max(speed_up) FILTER (WHERE key = 'b_3360') < max(speed_up) FILTER (WHERE key = 'c_3360')
       AND max(speed_up) FILTER (WHERE key = 'c_3360') < max(speed_up) FILTER (WHERE key = 'd_3360') AS so
FROM gains GROUP BY what ORDER BY what
