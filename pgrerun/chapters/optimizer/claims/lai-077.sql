-- The report's optimizer chose wrongly for the third query, so it is one of its kind that is asked:
-- Postgres95's, mended and with both faults of 1990.
SELECT 'Postgres95 takes a nested loop' AS fact,
       bool_and(join_by = 'nested loop') AS so, true AS essential
FROM non_equal_joins_of_postgres95 WHERE query <> 3 AND forbidden = 'nothing'
UNION ALL
SELECT 'where that is forbidden it takes no other join', bool_and(join_by = 'nested loop'), true
FROM non_equal_joins_of_postgres95 WHERE query <> 3 AND forbidden = 'nested loop'
UNION ALL
SELECT 'for the third query, which joins by equality, it takes one', bool_and(join_by <> 'nested loop'), false
FROM non_equal_joins_of_postgres95 WHERE query = 3 AND forbidden = 'nested loop'
