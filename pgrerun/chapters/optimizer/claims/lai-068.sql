WITH said AS (
    SELECT max(value) FILTER (key = 'revised_switch') - max(value) FILTER (key = 'step') AS low,
           max(value) FILTER (key = 'best_switch') AS high
    FROM printed.optimizer_said
), own AS (
    SELECT selectivity FROM switches WHERE relation = 'tenk1' AND layout = 'clustered'
)
SELECT 'the planner takes the index below a selectivity and the sequential scan above it' AS fact,
       selectivity > 0 AND selectivity < 1 AS so
FROM own
UNION ALL
SELECT format('that selectivity, {:.2f}, is where Figure 3.14 or the text has it', selectivity),
       selectivity BETWEEN low AND high
FROM own, said
