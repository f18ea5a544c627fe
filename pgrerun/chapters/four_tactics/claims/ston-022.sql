-- of evaluating one more row of query c, which is the interpreter with all that it calls: fetching symbols,
-- checking and converting types, and the interpreter's own steps, in which are the operators: without any of
-- these it is too little, with all of them too much
WITH a_row AS (
    SELECT routine, regr_slope(instructions, tuples) AS own, regr_slope(inclusive, tuples) AS inclusive
    FROM ingres_routines
    WHERE query = 'c' AND tuples >= 1120 AND processes = 'together' AND process = 'decomp70'
    GROUP BY routine
), taken AS (
    SELECT sum(inclusive) FILTER (routine = 'interpret') AS whole, sum(own) FILTER (routine = 'interpret') AS steps,
           sum(inclusive) FILTER (routine IN ('getsymbol', 'typecheck')) AS fetching
    FROM a_row HAVING count(*) > 0
), ends AS (
    SELECT whole / (whole - fetching) AS low, whole / (whole - fetching - steps) AS high,
           (SELECT ingres / dc FROM printed.four_tactics_compiled_cpu WHERE key = 'c_3360') AS saved
    FROM taken
)
SELECT format('to evaluate a row of query c takes INGRES at least {:.2f} times the instructions that it would without'
              || ' interpreting, which is what compiling is printed to have saved', saved) AS fact,
       CASE WHEN low >= saved THEN true WHEN high < saved THEN false END AS so
FROM ends
