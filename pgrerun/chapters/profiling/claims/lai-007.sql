-- Whenever possible: of further uses of an attribute less than half may need a call.
SELECT 'most further uses of an attribute need no call' AS fact,
       max_by(calls, uses) - min_by(calls, uses) < (max(uses) - min(uses)) / 2 AS so
FROM postgres95_uses HAVING count(*) > 0
