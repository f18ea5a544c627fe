-- As much as the second routine of the profile, which is where NodeIsType stood.
SELECT 'testing types takes as much of the ' || query_set || ' as the second routine' AS fact,
       tests.share >= second.share AS so
FROM (SELECT query_set,
             sum(instructions) FILTER (kind = 'type test') / sum(instructions) AS share
      FROM kinds_of_instruction WHERE routine IS NULL GROUP BY 1) AS tests
JOIN (SELECT query_set, list_reverse_sort(list(instructions))[2] / sum(instructions) AS share
      FROM profile WHERE kind = 'routine' GROUP BY 1) AS second USING (query_set)
ORDER BY query_set
