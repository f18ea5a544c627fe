WITH said AS (
    SELECT list(key ORDER BY cost) AS in_order FROM printed.optimizer_ranges
), faulty AS (
    SELECT list(query ORDER BY cost) AS in_order FROM multiplied_ranges
), right_ones AS (
    SELECT list(query ORDER BY cost) AS in_order FROM ranges
)
SELECT 'a server that multiplies puts the four costs into the printed order' AS fact,
       faulty.in_order = said.in_order AS so, true AS essential
FROM faulty, said
UNION ALL
SELECT 'without the fault the four costs have another order',
       right_ones.in_order <> said.in_order, true
FROM right_ones, said
UNION ALL
SELECT 'the products of the equations are the printed selectivities',
       bool_and(abs(d.product / s.value - 1) < 0.01), false
FROM printed.optimizer_ranges_derived AS d
JOIN printed.optimizer_said AS s ON s.key = replace(d.key, 'q', 'product_')
