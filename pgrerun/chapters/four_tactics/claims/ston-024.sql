WITH counted AS (
    SELECT query, coalesce(sum(calls) FILTER (routine = 'log'), 0) AS calls,
           coalesce(sum(instructions) FILTER (routine = 'log'), 0) AS taken, sum(instructions) AS total
    FROM ingres_routines
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND fillfactor = 100 AND (organization = 'hash') = (query = 'h')
          AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY query
), found AS (
    SELECT bool_and((calls > 0) = (query IN ('d', 'i'))) AS because,
           100 * sum(taken) / sum(total) AS share,
           100 * sum(taken) FILTER (query = 'd') / sum(total) FILTER (query = 'd') AS of_d
    FROM counted HAVING count(*) > 0
), said AS (
    SELECT percent FROM printed.four_tactics_profile WHERE key = 'LOG'
)
SELECT 'INGRES calls the logarithm in the commands that have one, queries d and i, and in no other' AS fact,
       because AS so, true AS essential
FROM found
UNION ALL
SELECT format('of the nine queries it takes {:.2g} % of the instructions, within a tenth of the printed {:.1f} % of time', share, percent),
       abs(share - percent) <= 0.1 * percent, false
FROM found, said
UNION ALL
SELECT format('of query d it takes more: {:.2g} %', of_d), of_d > share, false FROM found
