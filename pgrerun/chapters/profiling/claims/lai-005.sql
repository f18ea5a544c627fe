-- What the scans would gain if fastgetattr were free, as in the first profile: called for every
-- attribute of each scanned tuple as well, and without a cache of offsets. The printed share is of a
-- whole with the rule manager's own work and 1990's tests of node types in it, and the build has neither:
-- what it executes beside fastgetattr is taken as so many times more as these two make it in print.
WITH found AS (
    SELECT sum(instructions) FILTER (routine LIKE 'fastgetattr%') AS fetched, sum(instructions) AS whole
    FROM postgres95_profile WHERE variant = 'every attribute' AND query_set = 'scans' HAVING count(*) > 0
), print AS (
    SELECT 100 - fetching.share AS others, tests.share + manager."first" AS gone
    FROM printed.profiling_routines AS fetching, printed.profiling_routines AS tests,
         printed.profiling_subsystems AS manager
    WHERE fetching.key = 'first_fastgetattr' AND tests.key = 'first_NodeIsType' AND manager.label = 'rule manager'
)
SELECT 1 + fetched / ((whole - fetched) * others / (others - gone)) AS value FROM found, print
