-- Of every run, or it is open.
SELECT 'on the commit before HOT branches_pkey grows' AS fact,
       CASE WHEN min(branches_pkey) > 0 THEN true WHEN max(branches_pkey) = 0 THEN false END AS so
FROM small_tables_by_clients WHERE server = 'before-hot'
UNION ALL
SELECT 'on the commit with HOT it doesn''t grow',
       CASE WHEN max(branches_pkey) = 0 THEN true WHEN min(branches_pkey) > 0 THEN false END
FROM small_tables_by_clients WHERE server = 'hot'
