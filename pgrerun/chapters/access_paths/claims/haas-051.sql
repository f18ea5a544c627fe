-- The plan of 9.2 itself, left alone, over tables so large that looking up keys pays. Today's, and
-- 9.1's where it is forced today, are told.
SELECT 'left alone, 9.2 takes a nested loop of index probes' AS fact,
       NOT regexp_matches(joins, 'Merge|Hash') AND shape NOT LIKE '%Seq Scan%' AS so,
       true AS essential
FROM forms_on_releases WHERE server = '9.2' AND form = 'left join over an inner join'
UNION ALL
SELECT 'it reads no rows of the large tables but those asked for', rows_read <= 2 * keys.value, true
FROM forms_on_releases, printed.access_paths_join AS keys
WHERE server = '9.2' AND form = 'left join over an inner join' AND keys.key = 'rows'
UNION ALL
SELECT 'today''s planner, left alone, does the same',
       NOT regexp_matches(joins, 'Merge|Hash') AND shape NOT LIKE '%Seq Scan%'
           AND rows_read <= 2 * keys.value,
       false
FROM join_plans, printed.access_paths_join AS keys
WHERE plan = 'index probes, as in 9.2' AND keys.key = 'rows'
UNION ALL
SELECT '9.1''s plan, forced, merge-joins what it reads', NOT regexp_matches(joins, 'Nested|Hash'),
       false
FROM join_plans WHERE plan = 'merge joins, as in 9.1'
