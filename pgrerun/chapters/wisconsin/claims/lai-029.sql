WITH printed_ratios AS (
    SELECT recomputed_ratio < 1 AS won, kind = 'join' AND index = 'none' AS join_without_index
    FROM printed.wisconsin_figure_3_11_derived WHERE postgres IS NOT NULL
)
SELECT 'whatever POSTGRES wins in the figure is a join without an index' AS fact,
       bool_and(join_without_index) FILTER (won) AS so, true AS essential
FROM printed_ratios
UNION ALL
SELECT 'every join without an index is won', bool_and(won) FILTER (join_without_index), false
FROM printed_ratios
