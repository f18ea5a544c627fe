-- prs2Retrieve of May 1990 is called for each scanned tuple, where no relation has a rule. The printed
-- shares are of wholes with 1990's tests of node types in them: what a build executes beside the rule
-- manager is taken as so many times more as these make it in print, as for lai-005. What has no name is
-- many routines of the C library, and takes no place in a list; the function manager's routines take one.
WITH each AS (
    SELECT variant, subsystem = 'rule manager' AS ruling, instructions,
           routine <> '(without a name)' AS named,
           CASE WHEN starts_with(routine, 'fmgr') THEN 'fmgr'
                ELSE split_part(routine, '.', 1) || ' ' || file END AS name
    FROM postgres95_changes
    WHERE variant IN ('rules asked for first', 'rules asked for each attribute')
), listed AS (
    SELECT variant, bool_or(ruling) AS ruling,
           rank() OVER (PARTITION BY variant ORDER BY sum(instructions) DESC) AS place
    FROM each WHERE named GROUP BY variant, name
), places AS (
    SELECT min(place) FILTER (variant = 'rules asked for each attribute') AS before,
           min(place) FILTER (variant = 'rules asked for first') AS after
    FROM listed WHERE ruling
), printed_shares AS (
    SELECT 'rules asked for each attribute' AS variant, 'first' AS stage, m."first" AS rules, n.share AS tests
    FROM printed.profiling_subsystems AS m, printed.profiling_routines AS n
    WHERE m.label = 'rule manager' AND n.key = 'first_NodeIsType'
    UNION ALL
    SELECT 'rules asked for first', 'second', m.second, n.share
    FROM printed.profiling_subsystems AS m, printed.profiling_routines AS n
    WHERE m.label = 'rule manager' AND n.key = 'second_NodeIsType'
), found AS (
    SELECT variant, sum(instructions) FILTER (ruling) AS own, sum(instructions) FILTER (NOT ruling) AS others
    FROM each GROUP BY variant
), shares AS (
    SELECT variant, rules, 100 * own / (own + others * (100 - rules) / (100 - rules - tests)) AS share
    FROM found JOIN printed_shares USING (variant)
)
SELECT 'no routine of it is among the first ten with the check, and some are without' AS fact,
       before <= 10 AND after > 10 AS so, true AS essential
FROM places WHERE before IS NOT NULL AND after IS NOT NULL
UNION ALL
SELECT 'with the check it takes as much of the scans as is printed, to a tenth',
       abs(share / rules - 1) <= 0.1, false
FROM shares WHERE variant = 'rules asked for first' AND (SELECT count(*) FROM shares) = 2
UNION ALL
SELECT 'without the check it takes as much of the scans as is printed, to a tenth',
       abs(share / rules - 1) <= 0.1, false
FROM shares WHERE variant = 'rules asked for each attribute' AND (SELECT count(*) FROM shares) = 2
UNION ALL
SELECT 'of what it executed as much is left as by the printed shares and totals, to a tenth',
       abs(min(own) / max(own) / (min(rules * cycles) / max(rules * cycles)) - 1) <= 0.1, true
FROM found JOIN printed_shares USING (variant)
JOIN printed.profiling_totals ON key = stage HAVING count(*) = 2
UNION ALL
SELECT 'with the check no routine of it stands before the printed place', after >= said.value, false
FROM places, printed.profiling_said AS said
WHERE said.key = 'rule_position' AND before IS NOT NULL AND after IS NOT NULL
