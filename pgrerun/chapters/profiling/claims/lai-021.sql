WITH shares AS (
    SELECT query_set, subsystem, instructions / sum(instructions) OVER (PARTITION BY query_set) AS share
    FROM postgres95_profile WHERE variant = 'assertions'
), change AS (
    SELECT subsystem, sum(share) FILTER (query_set = 'transactions')
                      - sum(share) FILTER (query_set = 'scans') AS difference
    FROM shares GROUP BY subsystem
)
SELECT 'the share of the ' || subsystem || claimed AS fact,
       CASE claimed WHEN ' rises' THEN difference > 0 ELSE difference < 0 END AS so
FROM (VALUES ('parser', ' rises'), ('optimizer', ' rises'), ('system functions', ' rises'),
             ('storage manager', ' falls'), ('executor', ' falls')) AS said (subsystem, claimed)
LEFT JOIN change USING (subsystem)
