-- By more than a hundredth.
SELECT max(cost) > 1.01 * min(cost) AS still_there
FROM (SELECT cost FROM ranges WHERE query IN ('q1', 'q3')
      UNION ALL
      SELECT cost FROM moved_range WHERE fault = 'as it is')
