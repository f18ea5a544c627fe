-- what computing it once spares is told by PostgreSQL, whose planner does: Debian's library and others
-- have another name for the logarithm each, so that it must be seen where it is hidden from the planner
WITH ingres AS (
    SELECT calls = tuples AS so FROM ingres_routines
    WHERE query = 'd' AND tuples = 3360 AND processes = 'together' AND process = 'decomp70' AND routine = 'log'
), postgres AS (
    SELECT sum(exclusive) FILTER (how = 'logarithm hidden') AS hidden,
           coalesce(sum(exclusive) FILTER (how = 'as printed' AND tuples = 3360), 0) AS few,
           coalesce(sum(exclusive) FILTER (how = 'as printed' AND tuples = 33600), 0) AS many
    FROM profile
    WHERE query = 'd' AND regexp_matches(function, '^dlog1$|log_fma$|^log$|^log@')
)
SELECT 'INGRES computes the logarithm of the constant once for every row' AS fact, so, true AS essential FROM ingres
UNION ALL
SELECT 'computed once by PostgreSQL''s planner, it takes no more instructions of ten times the rows',
       CASE WHEN hidden > 0 THEN many <= 1.05 * few END, true
FROM ingres, postgres
UNION ALL
SELECT 'hidden from that planner, it takes instructions for every row', hidden > 3360, false FROM ingres, postgres
