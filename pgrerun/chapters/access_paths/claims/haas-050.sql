SELECT 'left alone, 9.1 reads all of both large tables' AS fact, rows_read = 2 * table_rows AS so,
       true AS essential
FROM join_on_releases WHERE server = '9.1' AND plan = 'left alone'
UNION ALL
SELECT 'made to use nested loops, 9.1 still reads all of both', rows_read = 2 * table_rows, true
FROM join_on_releases WHERE server = '9.1' AND plan = 'made to use nested loops'
UNION ALL
SELECT '9.2 reads no rows but those asked for', rows_read <= 2 * keys.value, false
FROM join_on_releases, printed.access_paths_join AS keys
WHERE server = '9.2' AND plan = 'left alone' AND keys.key = 'rows'
