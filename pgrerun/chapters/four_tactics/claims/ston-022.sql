-- of one more row of query c: fetching symbols, checking and converting types, and the interpreter's own steps
WITH a_row AS (
    SELECT routine, regr_slope(instructions, tuples) AS own, regr_slope(inclusive, tuples) AS inclusive
    FROM ingres_routines
    WHERE query = 'c' AND tuples >= 1120 AND processes = 'together' AND process = 'decomp70'
    GROUP BY routine
)
SELECT sum(own) / (sum(own) - sum(own) FILTER (WHERE routine = 'interpret')
                   - sum(inclusive) FILTER (WHERE routine IN ('getsymbol', 'typecheck'))) AS value
FROM a_row HAVING count(*) > 0
