-- name: disagreements
SELECT place AS "where", printed, recomputed, note FROM printed.checks WHERE chapter = 'scalability' AND NOT agrees;

-- name: gains
SELECT 'lookups, 32 clients' AS what, value AS times FROM printed.scalability_read WHERE key = 'gain'
UNION ALL SELECT 'writers, 32 clients', 1 + value / 100 FROM printed.scalability_write WHERE key = 'gain_percent'
UNION ALL SELECT 'inserts, 250 clients, at least', value FROM printed.scalability_write WHERE key = 'commit_gain_low'
UNION ALL SELECT 'inserts, 250 clients, at most', value FROM printed.scalability_write WHERE key = 'commit_gain_high'
UNION ALL SELECT 'lookups on 64 processors over one', value FROM printed.scalability_read WHERE key = 'speedup';

-- name: setup
SELECT printed AS "the talk", value, unit FROM printed.scalability_read WHERE key LIKE 'cores%'
UNION ALL SELECT printed, value, unit FROM printed.scalability_write WHERE key IN ('commit_cores', 'commit_threads', 'commit_clients')
UNION ALL SELECT printed, value, unit FROM printed.scalability_idle WHERE key IN ('read_minutes', 'write_minutes', 'repeats');
