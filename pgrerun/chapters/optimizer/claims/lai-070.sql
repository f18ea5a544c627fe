SELECT 'the calculated cost of a sequential scan is the same at every selectivity' AS fact,
       bool_and(costs = 1) AS so
FROM (SELECT count(DISTINCT cost) AS costs FROM planned_scans
      WHERE relation = 'tenk1' AND method = 'sequential scan' GROUP BY layout)
UNION ALL
SELECT 'a sequential scan touches every page once, at every selectivity', bool_and(pages = whole)
FROM scanned_pages WHERE method = 'sequential scan'
