-- What the chapter's tables show: queries over rows of its experiments, and of what is printed.

-- name: disagreements
SELECT place AS "where", printed, recomputed, note
FROM printed.checks WHERE chapter = 'optimizer' AND NOT agrees;

-- name: commands
SELECT query, postquel AS "POSTQUEL, as printed", sql AS "SQL" FROM commands;

-- name: scans
SELECT layout, selectivity, max(method) FILTER (chosen) AS planned,
       max(cost) FILTER (method = 'sequential scan') AS "sequential scan",
       max(cost) FILTER (method = 'index scan') AS "index scan",
       max(cost) FILTER (method = 'bitmap scan') AS "bitmap scan"
FROM planned_scans WHERE relation = 'tenk1'
GROUP BY layout, selectivity ORDER BY layout, selectivity;

-- name: pages
SELECT selectivity, max(pages) FILTER (method = 'sequential scan') AS "sequential scan",
       max(pages) FILTER (method = 'index scan') AS "index scan",
       max(pages) FILTER (method = 'bitmap scan') AS "bitmap scan", any_value(whole) AS pages
FROM scanned_pages GROUP BY selectivity ORDER BY selectivity;

-- name: exchanged
SELECT selectivity, rows, max(expected) FILTER (fault = 'as it is') AS "as it is",
       max(expected) FILTER (fault <> 'as it is') AS "wrong function for >"
FROM greater_than GROUP BY selectivity, rows ORDER BY selectivity;

-- name: hidden
SELECT selectivity, rows, max(expected) FILTER (seen) AS "constant seen",
       max(expected) FILTER (NOT seen) AS "constant hidden"
FROM hidden_constant GROUP BY selectivity, rows ORDER BY selectivity;

-- name: extremes
SELECT attribute, median(error_factor) AS median, max(error_factor) AS largest
FROM interpolation WHERE parts = 0 GROUP BY attribute ORDER BY attribute;

-- name: joins
SELECT query, max(p.method) FILTER (p.planned = 'yes') AS "planned in 1990",
       max(j.method) FILTER (chosen) AS "planned here",
       any_value(rows) AS "rows expected", any_value(actual) AS rows,
       max(cost) FILTER (j.method = 'nested loop') AS "nested loop",
       max(cost) FILTER (j.method = 'hash join') AS "hash join",
       max(cost) FILTER (j.method = 'merge join') AS "merge join"
FROM planned_joins AS j JOIN printed.optimizer_joins AS p USING (query)
WHERE size = 'report' GROUP BY query ORDER BY query;

-- name: instructions
SELECT query, max(instructions) FILTER (method = 'nested loop') AS "nested loop",
       max(instructions) FILTER (method = 'hash join') AS "hash join",
       max(instructions) FILTER (method = 'merge join') AS "merge join"
FROM join_instructions GROUP BY query ORDER BY query;

-- name: loops
SELECT CASE WHEN indexed THEN 'with an index' WHEN kept THEN 'without an index'
            ELSE 'without an index, nothing kept' END AS plan,
       pages, scans AS "scans of the inner side"
FROM pages_of_loops;

-- name: third_query
SELECT fault, max(method) FILTER (chosen) AS planned,
       max(cost) FILTER (method = 'nested loop') AS "nested loop",
       max(cost) FILTER (method = 'hash join') AS "hash join",
       max(cost) FILTER (method = 'merge join') AS "merge join"
FROM third_query GROUP BY fault ORDER BY "nested loop" DESC, fault;

-- name: scans_of_postgres95
SELECT selectivity, any_value(p.cost) FILTER (plan LIKE 'index%') AS "in print, corrected",
       max(s.cost) FILTER (fault = 'mended' AND bounds = 'the upper alone') AS "upper bound alone",
       max(s.cost) FILTER (fault = 'mended' AND bounds = 'as printed') AS "query as printed",
       max(s.cost) FILTER (fault <> 'mended' AND bounds = 'as printed') AS "not corrected"
FROM scans_of_postgres95 AS s JOIN printed.optimizer_revised AS p ON p.x = round(10 * selectivity)
GROUP BY selectivity ORDER BY selectivity;

-- name: joins_of_postgres95
SELECT query, max(p.method) FILTER (p.planned = 'yes') AS "planned in 1990", fault AS faults,
       max(j.method) FILTER (chosen) AS planned,
       max(cost) FILTER (j.method = 'nested loop') AS "nested loop",
       max(cost) FILTER (j.method = 'hash join') AS "hash join",
       max(cost) FILTER (j.method = 'merge join') AS "merge join"
FROM joins_of_postgres95 AS j JOIN printed.optimizer_joins AS p USING (query)
GROUP BY query, fault ORDER BY query, min(j.rowid);

-- name: non_equal
SELECT engine, join_by AS join, pairs_found AS pairs FROM non_equal_joins;

-- name: non_equal_joins_of_postgres95
SELECT query, fault AS faults, max(join_by) FILTER (forbidden = 'nothing') AS planned,
       max(join_by) FILTER (forbidden <> 'nothing') AS "with the nested loop forbidden"
FROM non_equal_joins_of_postgres95 GROUP BY query, fault ORDER BY query, min(rowid);

-- name: ranges
SELECT query, qualification, rows, round(product_tuples)::INT AS "rows in 1990",
       p.cost AS "cost in 1990", expected AS "rows here", r.cost AS "cost here"
FROM ranges AS r JOIN printed.optimizer_ranges_derived AS p ON p.key = query ORDER BY query;

-- name: multiplied
SELECT query, qualification, rows, product_tuples AS "rows by Figure 3.13",
       expected AS "rows with the fault", m.cost AS "cost with the fault"
FROM multiplied_ranges AS m JOIN printed.optimizer_ranges_derived AS p ON p.key = query
ORDER BY query;

-- name: two_attributes
SELECT condition, rows,
       max(expected) FILTER (extended_statistics = 'none') AS "no extended statistics",
       max(expected) FILTER (extended_statistics = 'dependencies') AS dependencies,
       max(expected) FILTER (extended_statistics = 'mcv') AS "most common values"
FROM two_attributes GROUP BY condition, rows ORDER BY "no extended statistics" DESC, rows;

-- name: regions
SELECT fault AS selectivity, count(DISTINCT plan) AS plans,
       avg((join_by = 'nested loop')::INT) AS "nested loop",
       avg((join_by = 'hash join')::INT) AS "hash join",
       avg((join_by = 'merge join')::INT) AS "merge join"
FROM diagram GROUP BY fault ORDER BY fault;

-- name: index_creation
SELECT step, with_statistics AS "columns with statistics", rows, expected FROM index_creation;

-- name: daemon
SELECT event, greatest AS "greatest value", known AS "known to the optimizer", seconds FROM daemon;

-- name: clustering
SELECT relation, layout, correlation, rows, cost FROM clustering;

-- name: clusterable
SELECT attribute, max(correlation) FILTER (NOT clustered) AS "correlation before",
       max(jumps) FILTER (NOT clustered) AS "jumps before",
       max(correlation) FILTER (clustered) AS "correlation after",
       max(jumps) FILTER (clustered) AS "jumps after"
FROM clusterable GROUP BY attribute ORDER BY min(rowid);

-- name: fitting
SELECT f.layout, f.cache, median(c.selectivity) AS "switch measured",
       any_value(cost) AS "random_page_cost that fits", any_value(least) AS "from",
       any_value(most) AS "to"
FROM fitting_costs AS f JOIN crossings AS c USING (layout, cache)
GROUP BY ALL ORDER BY layout, cache DESC;

-- name: yours
-- Run it in your own database: how far the order of each indexed column is that of its table's
-- rows, when the table was analyzed, and how many rows have changed since.
SELECT s.tablename, s.attname, round(s.correlation::numeric, 2) AS correlation,
       greatest(t.last_analyze, t.last_autoanalyze) AS analyzed, t.n_mod_since_analyze AS changed
FROM pg_stats AS s
JOIN pg_stat_user_tables AS t ON (t.schemaname, t.relname) = (s.schemaname, s.tablename)
JOIN pg_index AS i ON i.indrelid = t.relid
JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (i.indrelid, i.indkey[0]) AND a.attname = s.attname
ORDER BY t.n_live_tup DESC, s.tablename, s.attname
LIMIT 40;
