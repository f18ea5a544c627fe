-- What fmgr did, look up a function in a table and call it, is several routines in Postgres95: they
-- count as one. What has no name is many routines of the C library, and takes no place in the list.
WITH routines AS (
    SELECT variant, query_set, sum(instructions) AS instructions,
           CASE WHEN starts_with(routine, 'fmgr') THEN 'fmgr' ELSE routine || ' ' || file END AS name
    FROM postgres95_profile WHERE variant <> 'no offset cache' GROUP BY ALL
), ranked AS (
    SELECT *, instructions / sum(instructions) OVER (PARTITION BY variant, query_set) AS share,
           rank() OVER (PARTITION BY variant, query_set
                        ORDER BY starts_with(name, '(without a name)'), instructions DESC) AS place
    FROM routines QUALIFY name = 'fmgr'
), fmgr AS (
    SELECT max(place) FILTER (query_set = 'transactions' AND variant = 'assertions') AS of_transactions,
           max(share) FILTER (query_set = 'transactions' AND variant = 'assertions') AS share,
           max(place) FILTER (query_set = 'scans') AS lowest_of_scans,
           max(place) FILTER (query_set = 'scans' AND variant = 'assertions') AS with_checks,
           max(place) FILTER (query_set = 'scans' AND variant = 'no buffer checks') AS without_checks
    FROM ranked HAVING count(*) > 0
)
SELECT 'it is among the first ten routines of the transactions' AS fact, of_transactions <= 10 AS so,
       true AS essential
FROM fmgr
UNION ALL
SELECT 'it takes of the transactions what is printed, to a tenth',
       abs(100 * fmgr.share / said.share - 1) <= 0.1, true
FROM fmgr, printed.profiling_routines AS said WHERE key = 'transactions_fmgr'
UNION ALL
SELECT 'it is among the first ten routines of the scans, whatever checks are left out',
       lowest_of_scans <= 10, true
FROM fmgr
UNION ALL
SELECT 'with all checks left out it is higher in the list of the scans than with all of them',
       without_checks < with_checks, false
FROM fmgr
