WITH slides AS (
    FROM join_plans
    WHERE small = 100000 AND large = 1000000 AND of_small = 'unique1' AND of_large = 'unique1'
      AND multiplier = 1
)
SELECT 'with less memory than the smaller relation a merge join is picked' AS fact,
       bool_or(picked = 'Merge Join') FILTER (work_mem_kb <= 16384) AS so
FROM slides
UNION ALL
SELECT 'with more memory than the larger relation a merge join is picked', picked = 'Merge Join'
FROM slides WHERE work_mem_kb = 307200
