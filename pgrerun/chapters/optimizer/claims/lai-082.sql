-- Below the tighter bound's rows by more than a hundredth.
SELECT bool_or(expected < 0.99 * rows) AS still_there FROM ranges WHERE query IN ('q2', 'q4')
