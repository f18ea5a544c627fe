SELECT printf('interpreted a record of query c costs %g seconds', said.value) AS fact,
       round(ingres / size, 4) = said.value AS so
FROM printed.four_tactics_compiled_cpu, printed.four_tactics_said AS said
WHERE four_tactics_compiled_cpu.key = 'c_3360' AND said.key = 'record_interpreted_s'
UNION ALL
SELECT printf('compiled it costs %g seconds', said.value), round(dc / size, 4) = said.value
FROM printed.four_tactics_compiled_cpu, printed.four_tactics_said AS said
WHERE four_tactics_compiled_cpu.key = 'c_3360' AND said.key = 'record_compiled_s'
