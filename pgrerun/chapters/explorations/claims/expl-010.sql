WITH reader AS (FROM reader_pages WHERE pool = 1 AND ring),
dirty AS (FROM reader WHERE before = 'after an update')
SELECT 'a reader of miltup1 writes pages after an update of miltup2, and none after a read' AS fact,
       max(written) FILTER (before = 'after an update') > 0
           AND max(written) FILTER (before = 'after a read') = 0 AS so,
       true AS essential
FROM reader
UNION ALL
SELECT 'as many as it writes are no longer dirty',
       written > 0 AND written = dirty_before - dirty_after, true
FROM dirty
UNION ALL
SELECT 'it finds dirty pages of miltup2', dirty_before > 0, false FROM dirty
