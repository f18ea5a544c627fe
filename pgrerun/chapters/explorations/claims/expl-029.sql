-- With default settings, without an index, for each small and larger relation.
SELECT format('{:,} with {:,} tuples: Hash Join', small, large) AS fact,
       bool_and(picked = 'Hash Join') AS so
FROM join_plans WHERE work_mem_kb = 4096 AND of_small = 'unique1' AND of_large = 'unique1'
GROUP BY small, large ORDER BY small, large
