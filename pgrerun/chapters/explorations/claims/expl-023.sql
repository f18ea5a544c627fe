SELECT 'both queries scan sequentially' AS fact, bool_and(contains(plan, 'Seq Scan')) AS so,
       false AS essential
FROM point_plans WHERE attribute = 'unique3'
