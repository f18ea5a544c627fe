SELECT query_set AS part,
       sum(instructions) FILTER (WHERE subsystem = 'system functions') / sum(instructions) AS value
FROM postgres95_profile WHERE variant = 'assertions' GROUP BY 1 ORDER BY 1
