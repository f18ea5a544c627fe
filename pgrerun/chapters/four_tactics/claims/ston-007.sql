SELECT 'INGRES computes the logarithm of the constant once for every row' AS fact,
       calls = tuples AS so
FROM ingres_routines
WHERE query = 'd' AND tuples = 3360 AND processes = 'together' AND process = 'decomp70' AND routine = 'log'
