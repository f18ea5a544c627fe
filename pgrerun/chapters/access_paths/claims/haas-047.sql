-- In 9.2 the cost was that of a plain index scan with fewer pages: a straight line over the share.
WITH ends AS (
    SELECT arg_min(index_only, percent) AS none, arg_max(index_only, percent) AS all_of_them,
           arg_min(plain, percent) AS plain
    FROM costs
)
SELECT 'the cost is no longer that of a plain index scan minus the all-visible share of its pages'
           AS fact,
       bool_or(abs((index_only - all_of_them) / (none - all_of_them) - (1 - percent / 100)) >= 0.01)
           AS so
FROM costs, ends
UNION ALL
SELECT 'what a look into the map and a vain visit cost is estimated', none <> plain FROM ends
