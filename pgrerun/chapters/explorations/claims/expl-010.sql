WITH dirty AS (FROM reader_pages WHERE pool = 1 AND ring AND before = 'after an update')
SELECT 'a reader of miltup1 finds dirty pages of miltup2' AS fact, dirty_before > 0 AS so FROM dirty
UNION ALL
SELECT 'as many as it writes are no longer dirty',
       written > 0 AND written = dirty_before - dirty_after
FROM dirty
