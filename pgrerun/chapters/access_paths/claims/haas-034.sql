-- Where updates never stop, and autovacuum comes when as many rows have changed as PostgreSQL has it by
-- itself.
SELECT 'on average an index-only scan has to look up most of its rows in the table' AS fact,
       min(fetched) > 0.5 AS so, true AS essential
FROM updated_all_the_time
UNION ALL
SELECT 'right after vacuum none has to be', arg_min(fetched, updates) = 0, false FROM updates
UNION ALL
SELECT 'they are as many as there are rows on pages hit at random',
       bool_and(abs(fetched - computed) < 0.05), false
FROM updates
