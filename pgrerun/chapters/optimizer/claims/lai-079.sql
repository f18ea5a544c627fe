SELECT bool_or(narrow.cost > wide.cost) AS still_there
FROM ranges AS narrow JOIN ranges AS wide
  ON (narrow.query, wide.query) IN (('q1', 'q2'), ('q3', 'q4'))
