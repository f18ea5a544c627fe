-- Not significant compared to the execution time: beside what the executor, the access methods and the
-- storage manager take, no more than the most that the report's figures print of the optimizer, as
-- these are what it calls not significant. All are the routines' own shares, here as there.
WITH printed_shares AS (
    SELECT max(part / data) AS most
    FROM (SELECT max(share) FILTER (key = 'optimizer') AS part,
                 sum(share) FILTER (key IN ('executor', 'access_methods', 'storage_manager')) AS data
          FROM (UNPIVOT printed.profiling_subsystems ON "first", "second", transactions
                INTO NAME figure VALUE share)
          GROUP BY figure)
)
SELECT 'beside executing, the optimizer takes no more of the ' || query_set
       || ' than what the report calls not significant' AS fact,
       coalesce(sum(instructions) FILTER (subsystem = 'optimizer'), 0)
       <= most * sum(instructions) FILTER (subsystem IN ('executor', 'access methods', 'storage manager')) AS so
FROM postgres95_profile, printed_shares WHERE variant = 'assertions'
GROUP BY query_set, most ORDER BY query_set
