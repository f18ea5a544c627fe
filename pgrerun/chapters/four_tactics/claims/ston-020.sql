SELECT 'query ' || cpu.query || ' gains CPU and response time' AS fact,
       wall.speed_up > 1 AND cpu.speed_up > 1 AS so
FROM printed.four_tactics_compiled_cpu_derived AS cpu
JOIN printed.four_tactics_compiled_wall_derived AS wall USING (key)
WHERE cpu.query IN ('f', 'g', 'h', 'i') ORDER BY cpu.query
