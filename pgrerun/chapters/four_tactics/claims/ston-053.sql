-- by Table 8 and the printed costs of switch and message, a share of the new time
SELECT 'no command gains less than is printed' AS fact,
       bool_and(round(100 * (ingres / model - 1), 1) >= low) AS so
FROM printed.four_tactics_mangos_cpu_derived, (SELECT min(improvement) AS low FROM printed.four_tactics_mangos_cpu)
UNION ALL
SELECT 'no command gains more than is printed', bool_and(round(100 * (ingres / model - 1), 1) <= high)
FROM printed.four_tactics_mangos_cpu_derived, (SELECT max(improvement) AS high FROM printed.four_tactics_mangos_cpu)
