-- What the chapter's tables show, and two looks into your own database.

-- name: yours_all_visible
-- Your largest tables, and the share of their pages that an index-only scan needn't visit.
SELECT relname, relpages, round(100.0 * relallvisible / relpages) AS percent_all_visible
FROM pg_class
WHERE relkind = 'r' AND relpages > 0
ORDER BY relpages DESC
LIMIT 20;

-- name: yours_who_writes
-- From PostgreSQL 16 on: who has written pages of tables and indexes.
SELECT backend_type, context, sum(writes) AS writes
FROM pg_stat_io
WHERE object = 'relation' AND writes > 0
GROUP BY backend_type, context
ORDER BY writes DESC;

-- name: disagreements
SELECT place AS "where", printed, recomputed, note
FROM printed.checks WHERE chapter = 'explorations' AND NOT agrees;

-- name: pages
SELECT pool, before, dirty_before AS "dirty pages met", written, read, hit AS "found", kept AS "of its own left"
FROM reader_pages WHERE ring;

-- name: without_a_ring
SELECT CASE WHEN ring THEN 'through a ring' ELSE 'without a ring' END AS reader, before, read, written
FROM reader_pages WHERE pool = 1;

-- name: picks
SELECT CASE WHEN work_mem_kb < 1024 THEN work_mem_kb || 'kB' ELSE work_mem_kb // 1024 || 'MB' END
           AS work_mem,
       max(plan) FILTER (state = 'never vacuumed') AS "never vacuumed",
       max(plan) FILTER (state = 'vacuumed') AS vacuumed,
       max(plan) FILTER (state = 'no index used') AS "no index used"
FROM grouping_plans GROUP BY work_mem_kb ORDER BY work_mem_kb;

-- name: where_memory_decides
-- The joins in the order of growing work_mem, each from where on it is picked.
SELECT small, large, of_small, of_large, multiplier,
       string_agg(picked || ' from ' || CASE WHEN work_mem_kb < 1024 THEN work_mem_kb || 'kB'
                                             ELSE work_mem_kb // 1024 || 'MB' END,
                  '; ' ORDER BY work_mem_kb) AS picked
FROM (SELECT *, lag(picked) OVER (PARTITION BY small, large, of_small, of_large, multiplier
                                  ORDER BY work_mem_kb) AS before
      FROM join_plans)
WHERE before IS DISTINCT FROM picked
GROUP BY small, large, of_small, of_large, multiplier
HAVING count(*) > 1
ORDER BY small, large, of_small, of_large, multiplier;

-- name: scans
-- MB a second at which relations are scanned; in print the large one comes from a disk.
SELECT * FROM (
    SELECT 'printed' AS what, round(printed.wisconsin_pages(100000) / 128 / (q3 / 1000)) AS "small (MB/s)",
           round(printed.wisconsin_pages(10000000) / 128 / (q4 / 1000), 1) AS "a hundred times as large (MB/s)"
    FROM printed.explorations_sizeup_averages
    UNION ALL
    SELECT 'here, cold', round(median(printed.wisconsin_pages(small) / 128 / (cold_small / 1000))),
           round(median(printed.wisconsin_pages(large) / 128 / (cold_large / 1000))) FROM cold
    UNION ALL
    SELECT 'here, warm', round(median(printed.wisconsin_pages(small) / 128 / (warm_small / 1000))),
           round(median(printed.wisconsin_pages(large) / 128 / (warm_large / 1000))) FROM cold
);

-- name: plans_of_releases
SELECT release, CASE WHEN work_mem_kb < 1024 THEN work_mem_kb || 'kB'
                     ELSE work_mem_kb // 1024 || 'MB' END AS work_mem, any_value(plan) AS grouping
FROM plans_by_release WHERE work_mem_kb IN (64, 4096, 30720)
GROUP BY release, work_mem_kb ORDER BY try_cast(release AS double), work_mem_kb;
