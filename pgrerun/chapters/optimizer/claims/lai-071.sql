WITH own AS (
    SELECT * FROM planned_scans WHERE relation = 'tenk1' AND layout = 'clustered'
), line AS (
    SELECT cost - lag(cost) OVER (ORDER BY selectivity) AS rise FROM own WHERE method = 'index scan'
), steep AS (
    SELECT avg(rise) / (SELECT max(cost) FROM own WHERE method = 'sequential scan')
           / (SELECT (max(cost) FILTER (key = 'x2') - max(cost) FILTER (key = 'x1')) / max(cost)
              FROM printed.optimizer_revised) AS over_printed
    FROM line
)
SELECT 'the cost rises with every tenth' AS fact, min(rise) > 0 AS so, true AS essential FROM line
UNION ALL
SELECT 'by the same amount, to a fiftieth', max(rise) / min(rise) <= 1.02, true FROM line
UNION ALL
SELECT 'relative to the sequential scan''s cost the rise is the printed one, to a tenth',
       over_printed BETWEEN 1 / 1.1 AND 1.1, false
FROM steep
