-- In a pool as large as the relation that is read; a reader without a ring has a smaller one.
WITH dirty AS (FROM reader_pages WHERE pool = 1 AND before = 'after an update')
SELECT 'after the update dirty pages lie in the pool' AS fact, min(dirty_before) > 0 AS so,
       true AS essential
FROM dirty
UNION ALL
SELECT 'for most of its pages a reader without a ring first has to write one', 2 * written > read,
       true
FROM dirty WHERE NOT ring
UNION ALL
SELECT 'for most of its pages a reader through a ring has to', 2 * written > read, true
FROM dirty WHERE ring
UNION ALL
SELECT 'each writes some', min(written) > 0, false FROM dirty
UNION ALL
SELECT 'after a checkpoint neither writes any', sum(written) = 0, true
FROM reader_pages WHERE pool = 1 AND before = 'after an update and a checkpoint'
