SELECT 'query b on one tuple costs more CPU time with it' AS fact, fs > ingres AS so
FROM printed.four_tactics_files_cpu_derived WHERE key = 'b_1'
UNION ALL
SELECT 'by what is printed, as far as its rounded times tell', within_rounding
FROM printed.four_tactics_files_cpu_derived WHERE key = 'b_1'
