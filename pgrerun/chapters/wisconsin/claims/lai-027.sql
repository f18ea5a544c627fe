SELECT 'the ' || summary || ' rounds to ' || (said.value::INTEGER) AS fact,
       round(s.value) = said.value AS so,
       summary = 'geometric mean of the ratios' AS essential
FROM printed.wisconsin_summaries AS s, printed.wisconsin_said AS said
WHERE said.key = 'slower'
