-- The report asked at each tenth. Its text has the index up to 0.6 and the sequential scan over that, Figure 3.14 the
-- sequential scan at 0.6 already: so that tenth may go either way.
WITH own AS (
    SELECT round(selectivity, 1) AS tenth, method FROM planned_scans
    WHERE chosen AND relation = 'tenk1' AND layout = 'clustered'
), switched AS (
    SELECT max(tenth) FILTER (method <> 'sequential scan') AS last,
           min(tenth) FILTER (method = 'sequential scan') AS first,
           bool_and(method IN ('index scan', 'sequential scan')) AS either
    FROM own
), said AS (
    SELECT max(value) FILTER (key = 'revised_switch') AS text,
           (SELECT max(x) / 10 FROM printed.optimizer_revised WHERE plan = 'index scan') AS figure
    FROM printed.optimizer_said
)
SELECT 'as the selectivity is raised by tenths, the planner goes over from the index scan to the sequential scan, once' AS fact,
       coalesce(either AND last < first, false) AS so
FROM switched WHERE either IS NOT NULL
UNION ALL
SELECT format('the last tenth that it takes the index for, {:.1f}, is that of Figure 3.14, {:.1f}, or of the text, {:.1f}',
              last, figure, text),
       last BETWEEN figure AND text
FROM switched, said WHERE last IS NOT NULL
