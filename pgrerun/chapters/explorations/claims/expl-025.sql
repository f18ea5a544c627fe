-- Without an index on the column there is no index scan of it to choose: that is told.
SELECT relation || ', ' || attribute || ': '
           || CASE attribute WHEN 'unique2' THEN 'an index scan' ELSE 'another scan' END AS fact,
       starts_with(plan, 'Index Scan') = (attribute = 'unique2') AS so,
       attribute = 'unique2' AS essential
FROM point_plans ORDER BY attribute, tuples
