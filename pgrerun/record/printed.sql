-- What follows from the printed tables without any measurement, for schema `printed`.
--
-- TABLE_derived is a printed table with computed columns behind the printed ones, its rows by the
-- same key. A macro is arithmetic of a document's system that chapters use too. `cells` has every
-- cell as the text that was typed: table_name, key, column_name, text.


-- The pages of PostgreSQL, in bytes: 8192, of which the header takes 24 (20 until 8.2), and a
-- B-tree's last 16. A line pointer takes 4. The first pointer of a B-tree's page is its high key's.
-- When one is built, leaves are filled to nine tenths, what is above them to seven.

-- An index tuple of one or of two integers takes 16 bytes: a header of 8, then 4 or 8 of data,
-- aligned to 8.
CREATE MACRO tree_leaves(tuples) AS
    ceil(tuples / floor((8192 - 24 - 16 - 2 * 4 - floor(0.1 * 8192)) / (16 + 4)))::BIGINT;

CREATE MACRO tree_level(pages_below) AS
    CASE WHEN pages_below > 1
         THEN ceil(pages_below / floor((8192 - 24 - 16 - 2 * 4 - floor(0.3 * 8192)) / (16 + 4)))
         ELSE 0 END::BIGINT;

-- The page in front of the root, the leaves, and what is above them.
CREATE MACRO tree_pages(tuples) AS
    1 + printed.tree_leaves(tuples) + printed.tree_level(printed.tree_leaves(tuples))
    + printed.tree_level(printed.tree_level(printed.tree_leaves(tuples)))
    + printed.tree_level(printed.tree_level(printed.tree_level(printed.tree_leaves(tuples))));

-- pgbench's accounts is 4 + 4 + 4 + 85 bytes, aligned to 8, behind a tuple header of 24.
CREATE MACRO accounts_pages(tuples) AS
    ceil(tuples / floor((8192 - 24) / (24 + 104 + 4)))::BIGINT;

-- A Wisconsin tuple: thirteen int4, three strings of 52 letters with a byte of length each, aligned.
CREATE MACRO wisconsin_pages(tuples) AS
    ceil(tuples / floor((8192 - 24) / (24 + 8 * ceil((13 * 4 + 3 * 53) / 8) + 4)))::BIGINT;

-- Bytes of a table that one page of its visibility map covers, at so many bits per page.
CREATE MACRO map_coverage(bits) AS (8192 - 24) * 8 / bits * 8192;


-- A 32-bit PostgreSQL in March 2007, whose index tuples take 12 bytes: the printed block counts fit
-- no other layout. Tuples that a page of a table takes until its fillfactor is reached:
CREATE MACRO tuples_per_page(attribute_bytes, fillfactor) AS
    floor((8192 - 20 - floor(8192 * (100 - fillfactor) / 100)) / (24 + attribute_bytes + 4));

-- Entries of an index over an integer, on a leaf and on a page above.
CREATE MACRO entries_per_leaf() AS floor((8192 - 20 - 16 - 2 * 4 - floor(0.1 * 8192)) / (12 + 4));
CREATE MACRO entries_above() AS floor((8192 - 20 - 16 - 2 * 4 - floor(0.3 * 8192)) / (12 + 4));


-- ---- access paths

-- Throughput over that with the primary key alone; the size of the index by its layout; lookups in
-- the whole run; and how many reads per lookup a disk allows that serves the run with the primary
-- key alone with two reads per lookup (a leaf and a page of the table).
CREATE TABLE access_paths_lookups_derived AS
SELECT t.*,
       tps / first(tps) OVER (ORDER BY covering) AS over_primary_key,
       tree_pages(accounts) / 128 AS recomputed_megabytes,
       (tps * 60 * minutes)::DOUBLE AS lookups,
       tree_leaves(accounts) AS leaves,
       2 * first(tps) OVER (ORDER BY covering) / tps AS reads_per_lookup
FROM access_paths_lookups t,
     (SELECT 100000 * value AS accounts FROM access_paths_setup WHERE key = 'scale'),
     (SELECT value AS minutes FROM access_paths_setup WHERE key = 'minutes');

-- The time before PostgreSQL 9.2, and that over the row's own where it is one.
CREATE TABLE access_paths_join_derived AS
SELECT t.*, before_ms, CASE WHEN unit = 'ms' THEN before_ms / value END AS before_over
FROM access_paths_join t,
     (SELECT (1000 * sum(CASE key WHEN 'minutes_before' THEN 60 * value
                                  WHEN 'seconds_before' THEN value END))::BIGINT AS before_ms
      FROM access_paths_join);


-- ---- explorations

CREATE TABLE explorations_pool_averages_derived AS
SELECT t.*, recomputed_mb128, recomputed_mb208, recomputed_mb500
FROM explorations_pool_averages t
JOIN (SELECT "group", avg(mb128) AS recomputed_mb128, avg(mb208) AS recomputed_mb208,
             avg(mb500) AS recomputed_mb500
      FROM explorations_pool_rounds GROUP BY "group") ON "group" = key;

-- The pools' shares of the relation miltup, that being as large as its layout makes it.
CREATE TABLE explorations_pool_rounds_derived AS
SELECT t.*, share_mb128, share_mb208, share_mb500
FROM explorations_pool_rounds t,
     (SELECT any_value(share) FILTER (key = 'pool_small') AS share_mb128,
             any_value(share) FILTER (key = 'pool_equal') AS share_mb208,
             any_value(share) FILTER (key = 'pool_large') AS share_mb500
      FROM (SELECT key, value / (wisconsin_pages(1000000) / 128) AS share FROM explorations_setup));

-- Means without the fastest and the slowest run.
CREATE TABLE explorations_grouping_averages_derived AS
SELECT * FROM explorations_grouping_averages,
    (SELECT (sum(COLUMNS(* EXCLUDE key)) - min(COLUMNS(* EXCLUDE key))
             - max(COLUMNS(* EXCLUDE key))) / (count(*) - 2) AS "recomputed_\0"
     FROM explorations_grouping_runs);

CREATE TABLE explorations_sizeup_averages_derived AS
SELECT * FROM explorations_sizeup_averages,
    (SELECT (sum(COLUMNS(* EXCLUDE key)) - min(COLUMNS(* EXCLUDE key))
             - max(COLUMNS(* EXCLUDE key))) / (count(*) - 2) AS "recomputed_\0"
     FROM explorations_sizeup_runs);

-- By pool, the rounds whose reading after the update is slower than the control's.
CREATE TABLE explorations_slower_rounds AS
SELECT count(*) FILTER (d.mb128 > c.mb128) AS mb128,
       count(*) FILTER (d.mb208 > c.mb208) AS mb208,
       count(*) FILTER (d.mb500 > c.mb500) AS mb500
FROM explorations_pool_rounds d JOIN explorations_pool_rounds c USING (number)
WHERE d."group" = 'dirty' AND c."group" = 'clean';


-- ---- four tactics

-- Half a unit of the last digit of a printed number.
CREATE MACRO half_digit(text) AS 0.5 * power(10, -length(split_part(text, '.', 2)));

-- The five tables of seconds in one: the improvement (%) as a share of the new time and of the old
-- one, the speed-up (old over new), and whether half a unit of the last printed digits of both
-- times lets either formula give the printed improvement.
CREATE TABLE four_tactics_improvements AS
WITH seconds AS (
    SELECT *, 'four_tactics_compiled_wall' AS table_name, 1 AS number, 'dc' AS system
    FROM four_tactics_compiled_wall t(key, query, size, new, old, improvement)
    UNION ALL
    SELECT *, 'four_tactics_compiled_cpu', 2, 'dc'
    FROM four_tactics_compiled_cpu t(key, query, size, new, old, improvement)
    UNION ALL
    SELECT *, 'four_tactics_files_wall', 5, 'fs'
    FROM four_tactics_files_wall t(key, query, size, new, old, improvement)
    UNION ALL
    SELECT *, 'four_tactics_files_cpu', 6, 'fs'
    FROM four_tactics_files_cpu t(key, query, size, new, old, improvement)
    UNION ALL
    SELECT *, 'four_tactics_mangos_cpu', 9, 'mangos'
    FROM four_tactics_mangos_cpu t(key, query, size, new, old, improvement)
), rounded AS (
    SELECT s.*, new - half_digit(n.text) AS new_low, new + half_digit(n.text) AS new_high,
           old - half_digit(o.text) AS old_low, old + half_digit(o.text) AS old_high,
           half_digit(n.text) + half_digit(o.text) AS half_digits
    FROM seconds s
    JOIN cells n ON n.table_name = s.table_name AND n.key = s.key AND n.column_name = s.system
    JOIN cells o ON o.table_name = s.table_name AND o.key = s.key AND o.column_name = 'ingres'
)
SELECT table_name, number, key, query, size, new, old, improvement, half_digits,
       100 * (old - new) / new AS over_new, 100 * (old - new) / old AS over_old,
       old / new AS speed_up,
       improvement BETWEEN
           least(100 * (old_low - new_high) / new_high, 100 * (old_low - new_high) / old_low) - 0.05
       AND greatest(100 * (old_high - new_low) / new_low,
                    100 * (old_high - new_low) / old_high) + 0.05 AS within_rounding,
       -- which of the two formulas comes nearer, in rows where they differ
       abs(over_new - over_old) > 0.05 AS telling,
       telling AND abs(over_new - improvement) <= abs(over_old - improvement) AS tells_new,
       telling AND abs(over_old - improvement) <= abs(over_new - improvement) AS tells_old,
       CASE WHEN abs(100 * (first_print / new - 1) - improvement) < 0.05
            THEN printf(' With the %g s that Table 1 has for INGRES it is %.1f %%.', first_print,
                        100 * (first_print / new - 1))
            ELSE '' END AS of_other
FROM rounded JOIN (SELECT key, ingres AS first_print FROM four_tactics_compiled_wall) USING (key);

CREATE MACRO with_improvements(name) AS TABLE
SELECT t.*, over_new, over_old, speed_up, within_rounding
FROM query_table(name) t JOIN printed.four_tactics_improvements i ON i.table_name = name AND i.key = t.key;

CREATE TABLE four_tactics_compiled_wall_derived AS
FROM with_improvements('four_tactics_compiled_wall');
CREATE TABLE four_tactics_compiled_cpu_derived AS
FROM with_improvements('four_tactics_compiled_cpu');
CREATE TABLE four_tactics_files_wall_derived AS
FROM with_improvements('four_tactics_files_wall');
CREATE TABLE four_tactics_files_cpu_derived AS
FROM with_improvements('four_tactics_files_cpu');

-- And the CPU time (s) that Table 8 and the costs of switch and message give.
CREATE TABLE four_tactics_mangos_cpu_derived AS
SELECT t.*, t.ingres - a.reads * (switch_ms / 1e3 - mangos_switch_us / 1e6)
            - a.messages * (message_ms / 1e3 - mangos_message_us / 1e6) AS model
FROM with_improvements('four_tactics_mangos_cpu') t
JOIN four_tactics_access a ON a.key = regexp_replace(t.key, '^[bcd]_', 'bcd_'),
     (PIVOT (SELECT key, value FROM four_tactics_said)
      ON key IN ('switch_ms', 'message_ms', 'mangos_switch_us', 'mangos_message_us')
      USING any_value(value));

-- Reads beyond those of the shortest command with a relation: what its data cost.
CREATE TABLE four_tactics_access_derived AS
SELECT t.*, t.reads - s.reads AS beyond_one
FROM four_tactics_access t, four_tactics_access s WHERE s.key = 'bcd_1';

-- Per routine: instruction fetches saved (us), what is left after calling the microcode (us), the
-- saving in percent of a call, and that share of the routine's printed share of all CPU time (%).
CREATE TABLE four_tactics_microcode_derived AS
SELECT t.*, branches / 2 * fetch_ns / 1000 AS saved_us,
       branches / 2 * fetch_ns / 1000 - microstore_us AS net_us,
       100 * saved_ms / call_ms AS recomputed_routine,
       routine_percent / 100 * p.percent AS recomputed_overall
FROM four_tactics_microcode t JOIN four_tactics_profile p USING (key),
     (SELECT value AS fetch_ns FROM four_tactics_said WHERE key = 'fetch_ns'),
     (SELECT value AS microstore_us FROM four_tactics_said WHERE key = 'microstore_us');

-- The layout's number, where pages of 1024 bytes, with a header of 12 and a line table of 2 for
-- each tuple, and the tuple's width determine it.
CREATE TABLE four_tactics_relations_derived AS
SELECT t.*, CASE key WHEN 'small_pages' THEN ceil(small_tuples / narrow)
                     WHEN 'pages' THEN ceil(tuples / narrow)
                     WHEN 'main_tuples' THEN wide
                     WHEN 'main_pages' THEN ceil(loaded / wide) END AS layout
FROM four_tactics_relations t,
     (SELECT *, floor((1024 - 12) / (tuple_bytes + 2)) AS narrow,
             floor((1024 - 12) / (wide_bytes + 2)) AS wide
      FROM (PIVOT (SELECT key, value FROM four_tactics_relations)
            ON key IN ('tuple_bytes', 'wide_bytes', 'small_tuples', 'tuples', 'loaded')
            USING any_value(value)));


-- ---- hot

-- Sizes afterwards (blocks, and MB of 2^20 bytes), growth (%, and size afterwards over size before),
-- the increase without HOT over that with it (infinite where that is none), and, from scale and
-- page layout, tuples, the initial blocks, and how many blocks full pages of an index gain if each
-- splits once. The fillers of tellers and branches are null.
CREATE TABLE hot_growth_derived AS
WITH pgbench(name, per_scale, attribute_bytes) AS (
    VALUES ('accounts', 100000, 100), ('tellers', 10, 12), ('branches', 1, 8)
), counted AS (
    SELECT g.key, g.kind, per_scale * s.value AS tuples,
           CASE WHEN g.kind = 'table' THEN
               tuples_per_page(attribute_bytes, CASE g.name WHEN 'accounts' THEN f.value ELSE 100 END)
           END AS per_page,
           ceil(tuples / entries_per_leaf()) AS leaves,
           ceil(leaves / entries_above()) AS above
    FROM hot_growth g JOIN pgbench p ON p.name = replace(g.name, '_pkey', ''),
         hot_setup s, hot_setup f
    WHERE s.key = 'scale' AND f.key = 'fillfactor'
)
SELECT g.*,
       initial_head + increase_head AS final_head,
       (initial_head + increase_head) / 128 AS megabytes_head,
       100 * increase_head / initial_head AS growth_percent_head,
       (initial_head + increase_head) / initial_head AS times_head,
       initial_hot + increase_hot AS final_hot,
       (initial_hot + increase_hot) / 128 AS megabytes_hot,
       100 * increase_hot / initial_hot AS growth_percent_hot,
       (initial_hot + increase_hot) / initial_hot AS times_hot,
       CASE WHEN increase_hot = 0 THEN 'infinity' ELSE increase_head / increase_hot END
           AS increase_ratio,
       tuples, per_page,
       CASE WHEN g.kind = 'table' THEN ceil(tuples / per_page)
            -- the page in front of the root, the leaves, and a root above several pages
            ELSE 1 + leaves + CASE WHEN leaves > 1 THEN above + (above > 1)::INT ELSE 0 END
       END AS recomputed_initial,
       CASE WHEN g.kind = 'index' THEN
           floor(tuples / entries_per_leaf()) + floor(leaves / entries_above())
       END AS one_split_each
FROM hot_growth g JOIN counted USING (key) ORDER BY g.rowid;

-- Throughput over that of the same script without HOT, and over that of the full script with the
-- same server; the time that all transactions take, and what establishing connections took of it.
CREATE TABLE hot_throughput_derived AS
SELECT t.*, t.tps_including / head.tps_including AS over_head,
       t.tps_including / "full".tps_including AS over_full,
       value / t.tps_including AS elapsed_s,
       value / t.tps_including - value / t.tps_excluding AS connecting_s
FROM hot_throughput t
JOIN hot_throughput head ON head.script = t.script AND NOT head.hot
JOIN hot_throughput "full" ON "full".script = 'full' AND "full".hot = t.hot,
     hot_setup s
WHERE s.key = 'transactions';

-- Throughput over that without HOT, index and number of clients being the same.
CREATE TABLE hot_abalance_derived AS
SELECT t.*, t.tps / head.tps AS over_head
FROM hot_abalance t
JOIN hot_abalance head USING (index_on_abalance, clients)
WHERE NOT head.hot;


-- ---- optimizer

-- Selectivity of `key operator constant` by the equations of Figure 3.13, held between 0 and 1;
-- NULL for an operator that the figure hasn't.
CREATE MACRO interpolated(operator, constant, least_key, most_key) AS
    CASE operator
        WHEN '<' THEN greatest(0, least(1, (constant - least_key) / (most_key - least_key)))
        WHEN '>' THEN greatest(0, least(1, 1 - (constant - least_key) / (most_key - least_key)))
    END;

CREATE TABLE optimizer_set1_derived AS
SELECT t.*, x * value AS selectivity, 60 * index_minutes + index_seconds AS index_s,
       60 * seq_minutes + seq_seconds AS seq_s, index_s / seq_s AS index_over_seq
FROM optimizer_set1 t, optimizer_said s WHERE s.key = 'step';

CREATE TABLE optimizer_revised_derived AS
SELECT t.*, x * value AS selectivity, 60 * minutes + seconds AS time_s
FROM optimizer_revised t, optimizer_said s WHERE s.key = 'step';

-- No time where the print has words.
CREATE TABLE optimizer_joins_derived AS
SELECT t.*, 60 * minutes + seconds AS time_s FROM optimizer_joins t;

-- The selectivity of each bound by Figure 3.13, their product, the right selectivity of both
-- together, and what rows they would have been taken for.
CREATE TABLE optimizer_ranges_derived AS
SELECT t.*, interpolated('<', less, 0, tuples - 1) AS "first",
       interpolated(operator, bound, 0, tuples - 1) AS "second",
       "first" * "second" AS product,
       CASE operator WHEN '>' THEN (less - bound - 1) / tuples ELSE least(less, bound) / tuples END
           AS "right",
       product * tuples AS product_tuples, "right" * tuples AS right_tuples
FROM optimizer_ranges t, (SELECT value AS tuples FROM optimizer_said WHERE key = 'distinct');

-- Where the times of Figure 3.12 cross, on straight lines between its points; what a step of
-- selectivity costs an index scan in Figure 3.14; and where by that its costs cross.
CREATE TABLE optimizer_switch AS
WITH points AS (
    SELECT selectivity AS x1, index_s - seq_s AS d1,
           lag(x1) OVER (ORDER BY x1) AS x0, lag(d1) OVER (ORDER BY x1) AS d0
    FROM optimizer_set1_derived
), scans AS (
    SELECT *, cost - lag(cost) OVER (ORDER BY x) AS step
    FROM optimizer_revised_derived WHERE plan = 'index scan'
)
SELECT (SELECT x0 - d0 * (x1 - x0) / (d1 - d0) FROM points WHERE d0 < 0 AND d1 >= 0
        ORDER BY x1 LIMIT 1) AS best,
       first(step ORDER BY x) FILTER (step IS NOT NULL) AS first_step,
       min(step) AS least_step, max(step) AS most_step,
       avg(step) / any_value(value) AS per_unit,
       min(selectivity) + (any_value(seq_cost) - min(cost)) / per_unit AS planned
FROM scans, optimizer_said s, (SELECT seq_cost FROM optimizer_set1 ORDER BY x LIMIT 1)
WHERE s.key = 'step';


-- ---- profiling

-- For the profiles of Figure 2.1: gain (cycles of the profile before over these) and gain_in_all
-- (of the first over these).
CREATE TABLE profiling_totals_derived AS
SELECT t.*, gain, gain_in_all
FROM profiling_totals t
LEFT JOIN (SELECT key, lag(cycles) OVER print / cycles AS gain,
                  first(cycles) OVER print / cycles AS gain_in_all
           FROM profiling_totals WHERE queries = 'Figure 2.1'
           WINDOW print AS (ORDER BY rowid)) USING (key);

-- Cycles of the whole profile, rank, calls (cycles over cycles per call), and the share and the
-- cumulative share (%) that follow from the cycles.
CREATE TABLE profiling_routines_derived AS
SELECT r.*, t.cycles AS total, row_number() OVER print AS rank, r.cycles / per_call AS calls,
       100 * r.cycles / t.cycles AS recomputed_share,
       100 * sum(r.cycles) OVER print / t.cycles AS recomputed_cumulative
FROM profiling_routines r JOIN profiling_totals t ON t.key = r.stage
WINDOW print AS (PARTITION BY r.stage ORDER BY r.rowid);


-- ---- scalability

-- The share of the processors at hand that the number of clients or the speed-up makes.
CREATE TABLE scalability_read_derived AS
SELECT t.*, t.value / whole.value AS share
FROM scalability_read t
LEFT JOIN scalability_read whole ON whole.key =
    CASE WHEN t.key IN ('peak_before', 'clients', 'first_patch_falls') THEN 'cores'
         WHEN t.key = 'speedup' THEN 'cores_large' END;

-- 9.1's wake-ups per second over the row's.
CREATE TABLE scalability_idle_derived AS
SELECT t.*, CASE WHEN t.key IN ('wakeups_before', 'wakeups_after', 'demanded', 'vmware')
                 THEN before.value / t.value END AS times_fewer
FROM scalability_idle t, scalability_idle before WHERE before.key = 'wakeups_before';


-- ---- tp1

-- Throughput against stage one and against twice it, pool size (kB), time per transaction (s; all
-- backends together), its CPU and its other part (s), I/O requests per transaction and per second,
-- the disk's speed (I/O per second) that a run of one backend implies when it waits for the disk in
-- all time that isn't CPU time, and what perfect overlap would give: two backends that overlap
-- perfectly keep the busier of CPU and disk busy all the time.
CREATE TABLE tp1_stages_derived AS
WITH parts AS (
    SELECT *, 1 / tp1 AS elapsed_s, elapsed_s * cpu_percent / 100 AS cpu_s,
           elapsed_s - cpu_s AS wait_s, reads + writes AS ios
    FROM tp1_stages
), one AS (
    SELECT tp1, cpu_s, least(2 * tp1, 1 / greatest(cpu_s, wait_s)) AS ideal
    FROM parts WHERE key = 'one'
)
SELECT t.*, t.tp1 / one.tp1 AS relative, (t.buffers * page.value)::DOUBLE AS pool_kb,
       p.elapsed_s, p.cpu_s, p.wait_s, p.ios, p.ios * t.tp1 AS ios_per_s,
       CASE WHEN t.backends = 1 THEN p.ios / p.wait_s END AS implied_disk,
       CASE WHEN t.key = 'two' THEN ideal END AS recomputed_perfect_tp1,
       CASE WHEN t.key = 'two' THEN 100 * one.cpu_s * ideal END AS recomputed_perfect_cpu_percent,
       CASE WHEN t.key = 'two' THEN 2 * one.tp1 / t.tp1 END AS shortfall_of_doubling
FROM tp1_stages t JOIN parts p USING (key), one, tp1_catalogs page
WHERE page.key = 'page_size';

-- Elapsed, CPU and other time (s), CPU per copy (s), the elapsed time (s) and the CPU use (%) of
-- perfect overlap, how far the run falls short of it, I/O requests (each iteration reads once and
-- writes once), the disk's speed that one copy implies, and requests per second of elapsed time.
-- Copies overlap with each other, never one with itself.
CREATE TABLE tp1_overlap_derived AS
WITH parts AS (
    SELECT *, 60 * split_part(elapsed, ':', 1)::DOUBLE + split_part(elapsed, ':', 2)::DOUBLE
                  AS elapsed_s,
           elapsed_s * cpu_percent / 100 AS cpu_s, elapsed_s - cpu_s AS wait_s
    FROM tp1_overlap
)
SELECT t.*, p.elapsed_s, p.cpu_s, p.wait_s, p.cpu_s / t.copies AS cpu_s_per_copy,
       greatest(one.elapsed_s, t.copies * one.cpu_s, t.copies * one.wait_s) AS perfect_s,
       100 * t.copies * one.cpu_s / perfect_s AS recomputed_perfect_cpu_percent,
       p.elapsed_s / perfect_s AS shortfall,
       2 * t.iterations * t.copies AS ios,
       CASE WHEN t.copies = 1 THEN ios / p.wait_s END AS implied_disk,
       ios / p.elapsed_s AS ios_per_s
FROM tp1_overlap t JOIN parts p USING (key), parts one WHERE one.key = 'one';

-- Size (MB of 10^6 bytes), the fewest pages that the tuples' bytes fill, and the pages at as many
-- stored bytes per tuple as the printed pages of a 10-K relation imply.
CREATE TABLE tp1_relations_derived AS
SELECT t.*, tuples * tuple_bytes / 1e6 AS megabytes, tuples * tuple_bytes / page AS least_pages,
       tuples * stored / page AS implied_pages, stored AS implied_tuple_bytes
FROM tp1_relations t,
     (SELECT 1024 * value AS page FROM tp1_catalogs WHERE key = 'page_size'),
     (SELECT value * page / (SELECT max(tuples) FROM tp1_relations) AS stored
      FROM tp1_catalogs WHERE key = 'relation_pages');

-- What the parts sum to, in the total row.
CREATE TABLE tp1_bound_derived AS
SELECT t.*, CASE key WHEN 'total' THEN sum(reads) OVER () - reads END AS recomputed_reads,
       CASE key WHEN 'total' THEN sum(writes) OVER () - writes END AS recomputed_writes
FROM tp1_bound t;


-- ---- wisconsin

-- The ratio recomputed from the seconds, the query's number, and its group.
CREATE TABLE wisconsin_figure_3_11_derived AS
SELECT t.*, postgres / ingres AS recomputed_ratio, substr(key, 2)::BIGINT AS number,
       CASE WHEN kind IN ('insert', 'delete', 'update') THEN 'change' ELSE 'retrieval' END
           AS "group"
FROM wisconsin_figure_3_11 t;

-- POSTGRES over INGRES by three summaries of the same column.
CREATE TABLE wisconsin_summaries AS
SELECT unnest(['geometric mean of the ratios', 'median of the ratios',
               'ratio of the total times']) AS summary,
       unnest([exp(avg(ln(recomputed_ratio))), median(recomputed_ratio),
               sum(postgres) / sum(ingres)]) AS value,
       unnest(['The mean that treats a ratio and its inverse alike. The report doesn''t say which'
               || ' it took.',
               'Half of the queries are slower than this.',
               'The two joins that INGRES takes longest for nearly make up for all the others.'])
           AS note
FROM wisconsin_figure_3_11_derived WHERE postgres IS NOT NULL;
