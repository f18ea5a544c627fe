WITH old AS (SELECT line_pointer FROM versions_of_one_tuple WHERE moment = 'before')
SELECT 'the replaced version stays, marked invalid by the replacing transaction' AS fact,
       count(*) = 1 AND bool_and(ended_by) AS so
FROM versions_of_one_tuple
WHERE moment = 'after' AND line_pointer IN (FROM old)
UNION ALL
SELECT 'a new version was inserted by that transaction', count(*) = 1 AND bool_and(made_by)
FROM versions_of_one_tuple
WHERE moment = 'after' AND line_pointer NOT IN (FROM old)
