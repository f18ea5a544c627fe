-- The two indexes of the talk; computed are the pages that the layout of a B-tree gives.
WITH two AS (FROM index_sizes WHERE columns IN ('(aid)', '(aid, abalance)'))
SELECT 'the index on (aid, abalance) has as many bytes as that on aid' AS fact,
       count(DISTINCT bytes) = 1 AS so
FROM two
UNION ALL
SELECT 'both have as many pages as is computed, and the same arithmetic gives the printed megabytes at the talk''s size',
       bool_and(coalesce(pages = computed, false))
           AND (SELECT bool_and(round(recomputed_megabytes) = index_megabytes)
                FROM printed.access_paths_lookups_derived)
FROM two
