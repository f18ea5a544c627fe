SELECT format('{:,} with {:,} tuples: Merge Join', small, large) AS fact,
       bool_and(picked = 'Merge Join') AS so, (small, large) = (100000, 1000000) AS essential
FROM join_plans WHERE of_small = 'unique2' AND of_large = 'unique2'
GROUP BY small, large ORDER BY small, large
