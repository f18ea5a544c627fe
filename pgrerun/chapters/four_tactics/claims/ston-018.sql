SELECT printf('query %s with %s tuples', cpu.query, format('{:,}', cpu.size)) AS fact,
       wall.speed_up < cpu.speed_up AS so
FROM printed.four_tactics_compiled_cpu_derived AS cpu
JOIN printed.four_tactics_compiled_wall_derived AS wall USING (key)
WHERE cpu.size > 1
