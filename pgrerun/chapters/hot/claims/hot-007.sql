SELECT 'no update of a column in a B-tree is HOT' AS fact, heap_only = 0 AS so
FROM cases WHERE what = 'a column in a B-tree'
