WITH pairs AS (
    SELECT dirty.mb500 / clean.mb500 AS mb500, clean.mb500 AS control,
           greatest(max(clean.mb128) OVER () / min(clean.mb128) OVER (),
                    max(clean.mb208) OVER () / min(clean.mb208) OVER ()) AS spread_of_others
    FROM printed.explorations_pool_rounds dirty
    JOIN printed.explorations_pool_rounds clean USING (number)
    WHERE dirty."group" = 'dirty' AND clean."group" = 'clean'
)
SELECT 'the control readings at 500 MB spread more than at the other pools' AS fact,
       max(control) / min(control) > max(spread_of_others) AS so
FROM pairs
UNION ALL
SELECT 'of the five pairs at 500 MB some are slower after an update and some faster',
       min(mb500) < 1 AND max(mb500) > 1
FROM pairs
