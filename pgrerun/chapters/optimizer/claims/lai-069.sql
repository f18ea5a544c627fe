-- The report's factor weighs all I/O against all computing. random_page_cost prices a part of the
-- I/O, and the report's relation is clustered, so the other three facts are told and decide nothing.
WITH said AS (
    SELECT max(value) FILTER (key = 'best_switch')
           - max(value) FILTER (key = 'revised_switch') AS needed
    FROM printed.optimizer_said
), moved AS (
    SELECT layout, knob, min(factor) AS least, max(factor) AS most,
           arg_min(selectivity, factor) AS first, arg_max(selectivity, factor) AS last,
           max(selectivity) - min(selectivity) AS far
    FROM moved_switches GROUP BY ALL
)
SELECT format('where the relation is {}, {} times {:g} to {:g} brings the switch from {:.2f} to {:.2f}, by the {:.1g} that the report needs',
              layout, knob, least, most, first, last, needed) AS fact,
       far >= needed AS so,
       layout = 'clustered' AND knob = 'all CPU costs' AS essential
FROM moved, said ORDER BY essential DESC, layout, knob
