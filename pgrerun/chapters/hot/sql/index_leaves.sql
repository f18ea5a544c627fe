-- Without HOT: the pages of accounts to which the entries of a leaf lead, the median leaf.
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) FROM (
    SELECT count(DISTINCT (tid::text::point)[0]) AS pages
    FROM generate_series(1, pg_relation_size('accounts_pkey') / 8192 - 1) AS block,
         LATERAL bt_page_stats('accounts_pkey', block::int) AS leaf,
         LATERAL bt_page_items('accounts_pkey', block::int) AS item,
         LATERAL unnest(coalesce(item.tids, ARRAY[item.htid])) AS tid
    -- the high key, first on every leaf but the last, leads nowhere
    WHERE leaf.type = 'l' AND NOT (item.itemoffset = 1 AND leaf.btpo_next <> 0)
    GROUP BY block) AS leaves
