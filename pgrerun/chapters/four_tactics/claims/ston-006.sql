WITH d AS (
    SELECT routine, calls, tuples FROM ingres_routines
    WHERE query = 'd' AND tuples = 3360 AND processes = 'together' AND process = 'decomp70'
), facts(fact, name, essential) AS (
    VALUES ('INGRES looks at the operands'' types for every row', 'typecheck', true),
           ('it converts integers to floats for every row', 'itof', false),
           ('it computes the logarithm of the constant for every row', 'log', true)
)
SELECT fact, calls >= tuples AS so, essential FROM facts JOIN d ON routine = name ORDER BY essential DESC, fact
