-- What the chapter's tables show.

-- name: disagreements
SELECT place AS "where", printed, recomputed, note
FROM printed.checks WHERE chapter = 'access_paths' AND NOT agrees;

-- name: printed
-- What the talk measured, in its own numbers.
SELECT 'lookups, ' || label AS what, tps AS value, 'transactions/s' AS unit
FROM printed.access_paths_lookups
UNION ALL
SELECT 'join on 9.1', before_ms / 1000, 's' FROM printed.access_paths_join_derived
WHERE key = 'first_ms'
UNION ALL
SELECT 'join on 9.2, first execution', value / 1000, 's' FROM printed.access_paths_join
WHERE key = 'first_ms'
UNION ALL
SELECT 'join on 9.2, later executions', value / 1000, 's' FROM printed.access_paths_join
WHERE key = 'later_ms';

-- name: setup
SELECT quantity, value, unit FROM (
    SELECT replace(key, '_', ' ') AS quantity, value, unit FROM printed.access_paths_setup
);

-- name: map_size
SELECT 'bits of the map per page of the table' AS what, printed.value AS printed,
       max(bits) AS here
FROM map_size, printed.access_paths_said AS printed WHERE printed.key = 'bits' GROUP BY ALL
UNION ALL
SELECT 'MB of table that a page of the map covers', 1024 * printed.value,
       round(max(covered) / power(2, 20), 1)
FROM map_size, printed.access_paths_said AS printed WHERE printed.key = 'covered' GROUP BY ALL
UNION ALL
SELECT format('pages of the map at {:,} pages of table', pages), NULL, map_pages FROM map_size;

-- name: reads
SELECT scan, node, unmarked AS rows_on_unmarked_pages, heap_fetches, index_pages AS "index", table_pages AS "table", map_pages AS map
FROM reads;

-- name: join_plans
SELECT plan, rows_read, shape FROM join_plans;

-- name: q_errors
-- By what factor estimates are off.
SELECT operator,
       round(median(q_error) FILTER (statistics = 'without'), 2) AS "median without",
       round(max(q_error) FILTER (statistics = 'without'), 2) AS "largest without",
       round(median(q_error) FILTER (statistics <> 'without'), 2) AS "median with",
       round(max(q_error) FILTER (statistics <> 'without'), 2) AS "largest with"
FROM selectivity GROUP BY operator ORDER BY operator DESC;

-- name: points
SELECT index, round(1000 * median(build), 1) AS "build (ms)", median(pages) AS pages,
       round(1000 * median(execution), 4) AS "search (ms)",
       median(accesses) AS "page accesses per search"
FROM points GROUP BY index ORDER BY index;

-- name: texts
SELECT index, round(1000 * median(build), 1) AS "build (ms)", median(pages) AS pages,
       round(1000 * median(execution), 4) AS "search (ms)",
       median(accesses) AS "page accesses per search"
FROM texts GROUP BY index ORDER BY index;

-- name: tables_of_yours
-- Tables of yours that aren't marked all-visible, the largest first: an index-only scan visits them.
SELECT relid::regclass AS "table", relpages AS pages, relallvisible AS all_visible,
       round(100.0 * relallvisible / relpages) AS percent_all_visible, n_dead_tup AS dead_rows,
       coalesce(last_autovacuum, last_vacuum) AS vacuumed, reloptions AS options
FROM pg_class JOIN pg_stat_user_tables ON relid = pg_class.oid
WHERE relpages > 1000 AND relallvisible < 0.9 * relpages
ORDER BY relpages - relallvisible DESC
LIMIT 20;

-- name: releases
WITH found AS (
    SELECT 1 AS place, 'rows that the join reads' AS what, server, rows_read::DOUBLE AS value
    FROM join_on_releases WHERE plan = 'left alone'
    UNION ALL
    SELECT 2, 'the same with nested loops only', server, rows_read
    FROM join_on_releases WHERE plan <> 'left alone'
    UNION ALL
    SELECT 3, 'pages for all of the keys far apart, by a plain index scan', server, pages
    FROM lists_on_releases
    WHERE way = 'index scan' AND keys = 'keys far apart' AND asked = 'all of them'
    UNION ALL
    SELECT 4, 'median factor by which conditions on arrays are misestimated', server,
           median(q_error)
    FROM selectivity_on_releases GROUP BY server
    UNION ALL
    SELECT 5, 'pages of the prepared query for a rare value', server, pages
    FROM prepared_on_releases
)
SELECT what, max(value) FILTER (server = '9.1') AS "9.1",
       max(value) FILTER (server = '9.2') AS "9.2",
       max(value) FILTER (server = 'today''s') AS today
FROM found GROUP BY place, what ORDER BY place;
