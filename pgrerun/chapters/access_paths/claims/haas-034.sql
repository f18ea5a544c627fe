SELECT 'after ' || arg_max(updates, updates)::INT || ' updates per page since vacuum, more than'
           || ' nine rows in ten have to be looked up in the table' AS fact,
       arg_max(fetched, updates) > 0.9 AS so, true AS essential
FROM updates
UNION ALL
SELECT 'right after vacuum none has to be', arg_min(fetched, updates) = 0, false FROM updates
UNION ALL
SELECT 'they are as many as there are rows on pages hit at random',
       bool_and(abs(fetched - computed) < 0.05), false
FROM updates
