-- name: disagreements
SELECT place AS "where", printed, recomputed, note FROM printed.checks WHERE chapter = 'scalability' AND NOT agrees;

-- name: setup
SELECT printed AS "the talk", value, unit FROM printed.scalability_read WHERE key LIKE 'cores%'
UNION ALL SELECT printed, value, unit FROM printed.scalability_write WHERE key IN ('commit_cores', 'commit_threads', 'commit_clients')
UNION ALL SELECT printed, value, unit FROM printed.scalability_idle WHERE key IN ('read_minutes', 'write_minutes', 'repeats');
