WITH shares AS (
    SELECT query_set, sum(instructions) FILTER (subsystem = 'system functions')
                      / sum(instructions) AS share
    FROM postgres95_profile WHERE variant = 'assertions' GROUP BY 1
)
SELECT max(share) FILTER (query_set = 'transactions') / max(share) FILTER (query_set = 'scans') AS value
FROM shares HAVING count(*) > 0
