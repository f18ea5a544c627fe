-- On HOT's own commit. In both sequences it is the fifth step that finds the page full: the roots of
-- chains, and what lies between a root and the current version, before it and after it.
WITH shortened AS (
    SELECT sequence, heap_only, after.state = 'redirect' AS redirected,
           -- an update's own new version may have taken the place of one
           after.made IS DISTINCT FROM before.made AS gone
    FROM (FROM page_steps_then WHERE step = 4 AND old) AS before
    JOIN (SELECT sequence, line_pointer, state, made FROM page_steps_then WHERE step = 5) AS after
    USING (sequence, line_pointer)
), of_sequence AS (
    SELECT sequence,
           count(*) FILTER (NOT heap_only) > 1
           AND bool_and(redirected) FILTER (NOT heap_only) AS roots,
           count(*) FILTER (heap_only) > 0 AND bool_and(gone) FILTER (heap_only) AS inside
    FROM shortened GROUP BY sequence
)
SELECT 'an update that finds the page full makes each chain''s root a redirect' AS fact,
       roots AS so, true AS essential
FROM of_sequence WHERE sequence = 'updated until full'
UNION ALL
SELECT 'the dead versions inside the chains are gone', inside, true
FROM of_sequence WHERE sequence = 'updated until full'
UNION ALL
SELECT 'a SELECT does both as well', roots AND inside, false
FROM of_sequence WHERE sequence = 'read in between'
