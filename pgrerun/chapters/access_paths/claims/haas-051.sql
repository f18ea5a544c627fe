SELECT 'left alone, the planner takes a nested loop of index probes' AS fact,
       NOT regexp_matches(joins, 'Merge|Hash') AND shape NOT LIKE '%Seq Scan%' AS so,
       true AS essential
FROM join_plans WHERE plan = 'index probes, as in 9.2'
UNION ALL
SELECT 'the nested loop reads no rows of the large tables but those asked for',
       rows_read <= 2 * keys.value, true
FROM join_plans, printed.access_paths_join AS keys
WHERE plan = 'index probes, as in 9.2' AND keys.key = 'rows'
UNION ALL
SELECT '9.1''s plan, forced, merge-joins what it reads', NOT regexp_matches(joins, 'Nested|Hash'),
       false
FROM join_plans WHERE plan = 'merge joins, as in 9.1'
