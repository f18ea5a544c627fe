SELECT 'with a B-tree on the updated column no update is HOT' AS fact, heap_only = 0 AS so,
       true AS essential
FROM cases WHERE what = 'a column in a B-tree'
UNION ALL
SELECT 'a BRIN index, which came later, leaves none either', heap_only = 0, false
FROM cases WHERE what = 'a column in a BRIN index'
UNION ALL
SELECT 'without an index on it all are', same_page + other_page + other_partition = 0, false
FROM cases WHERE what = 'a column without index'
