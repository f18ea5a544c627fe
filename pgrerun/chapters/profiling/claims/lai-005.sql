-- What the scans would gain if fastgetattr were free, as it was before 1991: without a cache of offsets.
SELECT 1 / (1 - sum(instructions) FILTER (routine LIKE 'fastgetattr%') / sum(instructions)) AS value
FROM postgres95_profile WHERE variant = 'no offset cache' AND query_set = 'scans' HAVING count(*) > 0
