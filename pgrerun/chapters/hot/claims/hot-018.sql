-- A visit prunes a page with less than a tenth of it free (heap_page_prune_opt).
SELECT 'an update of a page with room to spare prunes nothing' AS fact,
       NOT bool_or(pruned AND free >= 8192 // 10) AS so
FROM update_prunes
UNION ALL
SELECT 'an update prunes only when the new version doesn''t fit',
       coalesce(bool_and(free < needed) FILTER (pruned), true)
FROM update_prunes
