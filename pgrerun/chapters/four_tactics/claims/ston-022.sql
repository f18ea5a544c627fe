-- of one more row of query c: fetching symbols, checking and converting types, and the interpreter's own
-- steps, in which are the operators: without any of these it is too little, with all of them too much
WITH a_row AS (
    SELECT routine, regr_slope(instructions, tuples) AS own, regr_slope(inclusive, tuples) AS inclusive
    FROM ingres_routines
    WHERE query = 'c' AND tuples >= 1120 AND processes = 'together' AND process = 'decomp70'
    GROUP BY routine
), taken AS (
    SELECT sum(own) AS whole, sum(own) FILTER (routine = 'interpret') AS steps,
           sum(inclusive) FILTER (routine IN ('getsymbol', 'typecheck')) AS fetching
    FROM a_row HAVING count(*) > 0
)
SELECT 'without the interpreter''s own steps' AS part, whole / (whole - fetching) AS value FROM taken
UNION ALL SELECT 'with them', whole / (whole - fetching - steps) FROM taken
