-- Not significant: less than the least overhead that the report found worth taking out.
SELECT 'the optimizer takes less of the ' || query_set || ' than the least overhead that the report took out' AS fact,
       coalesce(sum(instructions) FILTER (subsystem = 'optimizer'), 0)
       < (SELECT value / 100 FROM printed.profiling_said WHERE key = 'debug_overhead') * sum(instructions) AS so
FROM postgres95_profile WHERE variant = 'assertions' GROUP BY query_set ORDER BY query_set
