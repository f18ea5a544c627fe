SELECT 'a SELECT that can''t have the page for itself waits for it' AS fact, waited AS so,
       true AS essential
FROM select_prunes WHERE pinned_by_another
UNION ALL
SELECT 'pruning needs the page for itself', hole_left >= hole, true
FROM select_prunes WHERE pinned_by_another
UNION ALL
SELECT 'backends wait for its content lock, which updates take as well', share > 0, false
FROM tiny_table WHERE waiting = 'for the page''s content lock'
