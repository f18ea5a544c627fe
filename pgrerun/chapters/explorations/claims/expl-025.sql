SELECT relation || ', ' || attribute || ': '
           || CASE attribute WHEN 'unique2' THEN 'an index scan' ELSE 'another scan' END AS fact,
       starts_with(plan, 'Index Scan') = (attribute = 'unique2') AS so
FROM point_plans ORDER BY attribute, tuples
