-- On HOT's own commit. A visit prunes a page with less than a tenth of it free (heap_page_prune_opt).
SELECT 'updates prune their page, and none of them while a tenth of it is free' AS fact,
       bool_or(pruned) AND NOT bool_or(pruned AND free >= 8192 // 10) AS so
FROM update_prunes_then
UNION ALL
SELECT 'an update prunes only when the new version doesn''t fit',
       coalesce(bool_and(free < needed) FILTER (pruned), false)
FROM update_prunes_then
