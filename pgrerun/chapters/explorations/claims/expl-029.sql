-- Without an index, with as much memory as holds the smaller relation, and told with less.
WITH joined AS (
    SELECT *, 8 * printed.wisconsin_pages(small) <= work_mem_kb * multiplier AS fits
    FROM join_plans WHERE of_small = 'unique1' AND of_large = 'unique1'
)
SELECT format('{:,} tuples {} memory, with {:,}: Hash Join', small,
              CASE WHEN fits THEN 'in' ELSE 'too large for' END, large) AS fact,
       bool_and(picked = 'Hash Join') AS so, fits AND large >= 10 * small AS essential
FROM joined GROUP BY small, large, fits ORDER BY fits DESC, small, large
