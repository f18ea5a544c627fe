-- What fmgr did, look up a function in a table and call it, is several routines in Postgres95: they
-- count as one. What has no name is many routines of the C library, and takes no place in the list.
-- No address of a function is kept, as it wasn't in 1990; all checks are in, as when it was profiled.
WITH routines AS (
    SELECT query_set, sum(instructions) AS instructions,
           CASE WHEN starts_with(routine, 'fmgr') THEN 'fmgr' ELSE routine || ' ' || file END AS name
    FROM postgres95_profile WHERE variant = 'no stored addresses' GROUP BY ALL
), fmgr AS (
    SELECT query_set, instructions / sum(instructions) OVER (PARTITION BY query_set) AS share,
           rank() OVER (PARTITION BY query_set
                        ORDER BY starts_with(name, '(without a name)'), instructions DESC) AS place
    FROM routines QUALIFY name = 'fmgr'
), calls AS (
    SELECT query_set, sum(calls) FILTER (routine = 'fmgr_c') AS functions,
           sum(calls) FILTER (routine = 'yyparse') AS commands
    FROM postgres95_profile WHERE variant = 'no stored addresses' GROUP BY ALL
)
SELECT 'it is among the first ten routines of the ' || query_set AS fact, place <= 10 AS so,
       true AS essential
FROM fmgr
UNION ALL
SELECT 'it takes of the transactions what is printed, to a tenth',
       abs(100 * fmgr.share / said.share - 1) <= 0.1, false
FROM fmgr, printed.profiling_routines AS said
WHERE query_set = 'transactions' AND key = 'transactions_fmgr'
UNION ALL
SELECT 'the scans call as many functions by it as in print, to a tenth',
       abs(functions / (cycles / per_call) - 1) <= 0.1, false
FROM calls, printed.profiling_routines WHERE query_set = 'scans' AND key = 'second_fmgr'
UNION ALL
SELECT 'a command of the transactions calls as many as in print, to a tenth',
       abs(functions / commands / (cycles / per_call / said.value) - 1) <= 0.1, false
FROM calls, printed.profiling_routines AS fmgr, printed.profiling_said AS said
WHERE query_set = 'transactions' AND fmgr.key = 'transactions_fmgr' AND said.key = 'commands'
