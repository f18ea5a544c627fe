-- Not significant: less than a twentieth of all, the smallest effect of interest of this book.
SELECT 'the optimizer takes less than a twentieth of the ' || query_set AS fact,
       coalesce(sum(instructions) FILTER (subsystem = 'optimizer'), 0) < 0.05 * sum(instructions) AS so
FROM postgres95_profile WHERE variant = 'assertions'
GROUP BY query_set ORDER BY query_set
