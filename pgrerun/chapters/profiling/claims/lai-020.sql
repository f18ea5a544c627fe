SELECT sum(instructions) FILTER (subsystem IN ('parser', 'optimizer'))
       / sum(instructions) FILTER (subsystem IN ('executor', 'access methods', 'storage manager')) AS value
FROM postgres95_profile WHERE variant = 'assertions' AND query_set = 'transactions' HAVING count(*) > 0
