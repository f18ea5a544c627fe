-- the ends of the ranges are printed with one digit, and gains are compared as if they were
WITH times AS (
    SELECT 'CPU' AS what, size, ingres, fs, low, high
    FROM printed.four_tactics_files_cpu, printed.four_tactics_conclusions AS c WHERE c.key = 'FS'
    UNION ALL
    SELECT 'response', size, ingres, fs, response_low, response_high
    FROM printed.four_tactics_files_wall, printed.four_tactics_conclusions AS c WHERE c.key = 'FS'
), gains AS (
    SELECT *, 100 * (ingres / fs - 1) AS gain,
           round(gain, -CAST(floor(log10(abs(gain))) AS INTEGER)) AS rounded
    FROM times WHERE size = 3360
)
SELECT printf('each long command gains %g to %g %% of %s time', max(low), max(high), what) AS fact,
       bool_and(rounded BETWEEN low AND high) AS so, true AS essential
FROM gains GROUP BY what
UNION ALL
SELECT printf('all long commands together gain %g to %g %% of %s time', max(low), max(high), what),
       100 * (sum(ingres) / sum(fs) - 1) BETWEEN max(low) AND max(high), false
FROM gains GROUP BY what
ORDER BY essential DESC, fact
