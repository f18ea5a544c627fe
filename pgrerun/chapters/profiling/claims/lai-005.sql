-- What the scans would gain if fastgetattr were free, as in the first profile: called for every
-- attribute of each scanned tuple as well, and without a cache of offsets.
SELECT 1 / (1 - sum(instructions) FILTER (routine LIKE 'fastgetattr%') / sum(instructions)) AS value
FROM postgres95_profile WHERE variant = 'every attribute' AND query_set = 'scans' HAVING count(*) > 0
