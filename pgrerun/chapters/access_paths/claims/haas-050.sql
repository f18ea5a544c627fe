-- The order is told by the plan's shape: a join of nothing but the two large tables, which may be
-- sorted or hashed for it. In 9.2 it stands there as well, but looks up a key of the small table at a
-- time: what 9.1 can't do is told by the rows that it reads.
WITH plans AS (
    SELECT *, regexp_matches(shape, '(Join|Loop)\((\w[\w ]*\()*[\w ]+ Scan accounts[\w ]*\)*, '
                                    || '(\w[\w ]*\()*[\w ]+ Scan accounts[\w ]*\)') AS joined_first
    FROM join_on_releases
)
SELECT '9.1 joins the two large tables to each other, and then the small one' AS fact,
       bool_and(joined_first) AS so, true AS essential
FROM plans WHERE server = '9.1'
UNION ALL
SELECT 'left alone, 9.1 reads all of both large tables', rows_read = 2 * table_rows, true
FROM plans WHERE server = '9.1' AND plan = 'left alone'
UNION ALL
SELECT 'made to use nested loops, 9.1 still reads all of both', rows_read = 2 * table_rows, true
FROM plans WHERE server = '9.1' AND plan = 'made to use nested loops'
UNION ALL
SELECT '9.2 reads no rows but those asked for', rows_read <= 2 * keys.value, false
FROM plans, printed.access_paths_join AS keys
WHERE server = '9.2' AND plan = 'left alone' AND keys.key = 'rows'
