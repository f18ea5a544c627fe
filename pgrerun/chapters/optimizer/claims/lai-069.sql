-- POSTGRES added to the pages of a scan a weight for the processor: in its source (internal.h) 0.065
-- for each tuple, and twice that by an index, for the index's entry and for the tuple.
-- So of the printed 1021 the pages are 371, and of the 173.1 for each tenth by the index they are
-- 43.1: a tenth of those 371, and six of the index. That whole numbers are left confirms the weight.
-- Since an index is charged twice for what a sequential scan is charged once, a smaller weight moves
-- the crossing up, also where the constant part of the index's costs depends on the weight.
-- PostgreSQL's costs are told and decide nothing.
WITH said AS (
    SELECT max(value) FILTER (key = 'best_switch') AS best,
           best - max(value) FILTER (key = 'revised_switch') AS needed,
           0.065 * max(value) FILTER (key = 'large_tuples') AS computing
    FROM printed.optimizer_said
), line AS (
    SELECT max(cost) - regr_intercept(cost, selectivity) FILTER (plan = 'index scan') AS ahead,
           regr_slope(cost, selectivity) FILTER (plan = 'index scan') AS rise
    FROM printed.optimizer_revised_derived
), crossing AS (
    SELECT best, ahead / rise AS own,
           (ahead - 0.9 * computing) / (rise - 0.9 * 2 * computing) AS tuned
    FROM said, line
), moved AS (
    SELECT layout, knob, min(factor) AS least, max(factor) AS most,
           arg_min(selectivity, factor) AS first, arg_max(selectivity, factor) AS last,
           max(selectivity) - min(selectivity) AS far
    FROM moved_switches GROUP BY ALL
)
SELECT format('with a tenth of the weight the printed costs cross at {:.2f} instead of {:.2f}, nearer to the best switch-over, {:.1f}',
              tuned, own, best) AS fact,
       abs(best - tuned) < abs(best - own) AS so, true AS essential
FROM crossing
UNION ALL
SELECT format('in PostgreSQL, where the relation is {}, {} times {:g} to {:g} brings the switch from {:.2f} to {:.2f}, by the {:.1g} that the report needs',
              layout, knob, least, most, first, last, needed),
       far >= needed, false
FROM moved, said ORDER BY essential DESC, fact
