-- Not significant: less than the least share of the cycles that the report took out, by its totals,
-- which is what went with the checks of buffers.
SELECT 'the optimizer takes less of the ' || query_set || ' than the least overhead that the report took out' AS fact,
       coalesce(sum(instructions) FILTER (subsystem = 'optimizer'), 0)
       < (SELECT 1 - max(cycles) FILTER (key = 'sixth') / max(cycles) FILTER (key = 'fifth')
          FROM printed.profiling_totals) * sum(instructions) AS so
FROM postgres95_profile WHERE variant = 'assertions' GROUP BY query_set ORDER BY query_set
