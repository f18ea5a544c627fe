-- What the chapter's tables show.

-- name: disagreements
SELECT place AS "where", printed, recomputed, note
FROM printed.checks WHERE chapter = 'hot' AND NOT agrees;

-- name: setup
SELECT quantity, value, unit FROM (
    SELECT replace(key, '_', ' ') AS quantity, value, unit FROM printed.hot_setup
);

-- name: servers
-- The thread's own numbers, then each server's: pages before and growth, and heap-only updates.
SELECT * FROM (
    SELECT '2007, before HOT' AS server, name AS relation,
           format('{:,} + {:,}', initial_head, increase_head) AS pages,
           times_head AS times, NULL AS updated, NULL AS hot_updated, true AS vacuumed
    FROM printed.hot_growth_derived WHERE script = 'reduced'
    UNION ALL
    SELECT '2007, with HOT', name, format('{:,} + {:,}', initial_hot, increase_hot), times_hot,
           NULL, NULL, true
    FROM printed.hot_growth_derived WHERE script = 'reduced'
    UNION ALL
    SELECT server, relation, format('{:,} + {:,}', before, after - before), after / before,
           nullif(updated, 0), CASE WHEN updated > 0 THEN hot_updated END, vacuumed
    FROM on_the_threads_servers
);

-- name: steps
-- One of the sequences, a row per step.
SELECT step || ' ' || any_value(title) AS step,
       count(*) FILTER (state = 'normal') AS normal,
       count(*) FILTER (state = 'redirect') AS redirect,
       count(*) FILTER (state = 'dead') AS dead,
       count(*) FILTER (state = 'unused') AS unused,
       count(*) FILTER (heap_only) AS heap_only,
       sum(entries)::INT AS index_entries
FROM page_steps WHERE sequence = 'read in between'
GROUP BY page_steps.step ORDER BY page_steps.step;

-- name: pruning
-- Around the first update that pruned.
SELECT "update", free, needed, pruned, 8192 // 10 AS tenth_of_a_page
FROM update_prunes, (SELECT min("update") AS first FROM update_prunes WHERE pruned)
WHERE "update" BETWEEN first - 2 AND first + 1;

-- name: pruning_then
SELECT "update", free, needed, pruned, 8192 // 10 AS tenth_of_a_page
FROM update_prunes_then,
     (SELECT min("update") AS first FROM update_prunes_then WHERE pruned)
WHERE "update" BETWEEN first - 2 AND first + 1;

-- name: growth
-- Pages before and growth of what the thread grew: in 2007 and here.
SELECT g.name AS relation,
       format('{:,} + {:,}', g.initial_head, g.increase_head) AS "2007 without",
       format('{:,} + {:,}', g.initial_hot, g.increase_hot) AS "2007 HOT",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'neither HOT nor pruning') AS "here, neither HOT nor pruning",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'no HOT') AS "here, no HOT",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'HOT') AS "here, HOT"
FROM printed.hot_growth g JOIN sizes s ON s.relation = g.name
WHERE g.script = 'reduced'
GROUP BY ALL ORDER BY relation;

-- name: small_growth
SELECT g.name AS relation,
       format('{:,} + {:,}', g.initial_head, g.increase_head) AS "2007 without",
       format('{:,} + {:,}', g.initial_hot, g.increase_hot) AS "2007 HOT",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'neither HOT nor pruning') AS "here, neither HOT nor pruning",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'no HOT') AS "here, no HOT",
       max(format('{:,} + {:,}', s.before, s.after - s.before))
           FILTER (s.variant = 'HOT') AS "here, HOT"
FROM printed.hot_growth g JOIN small_tables s ON s.relation = g.name
WHERE g.script = 'full'
GROUP BY ALL ORDER BY relation DESC;

-- name: small_by_clients
-- From the run in which each grew least to the one in which it grew most.
SELECT server, min(tellers) || ' to ' || max(tellers) AS tellers,
       min(tellers_pkey) || ' to ' || max(tellers_pkey) AS tellers_pkey,
       min(branches) || ' to ' || max(branches) AS branches,
       min(branches_pkey) || ' to ' || max(branches_pkey) AS branches_pkey
FROM small_tables_by_clients GROUP BY server ORDER BY server;

-- name: computed
-- Pages of accounts and its index at the end, measured and computed.
SELECT m.variant, m.vacuumed, m.updates, m.accounts, c.accounts AS accounts_computed,
       m.accounts_pkey, c.accounts_pkey AS accounts_pkey_computed
FROM steady m JOIN computed c USING (variant, vacuumed, updates)
QUALIFY m.updates = max(m.updates) OVER (PARTITION BY variant, vacuumed)
ORDER BY m.variant, m.vacuumed;

-- name: queue_then
FROM (PIVOT (
    SELECT server || CASE WHEN transaction_left_open THEN ', a transaction left open'
                          WHEN vacuumed = 'after the last batch' THEN ', vacuumed late'
                          ELSE ', vacuumed in time' END AS queue,
           moment, jobs || ' + ' || jobs_pkey AS pages
    FROM queue_then
) ON moment IN ('halfway', 'at the end', 'after CLUSTER') USING max(pages) GROUP BY queue)
ORDER BY queue;

-- name: broken_chains
SELECT old_snapshot, marked, nullif(warnings, '') AS warnings, old_uses, old_finds, new_uses,
       new_finds
FROM broken_chains ORDER BY old_snapshot DESC;

-- name: tables_of_yours
-- Of your own tables those whose updates are least often heap-only.
SELECT relname, n_tup_upd AS updates,
       round(100.0 * n_tup_hot_upd / n_tup_upd) AS percent_heap_only,
       (SELECT count(*) FROM pg_index WHERE indrelid = relid) AS indexes,
       (SELECT reloptions FROM pg_class WHERE oid = relid) AS options
FROM pg_stat_user_tables
WHERE n_tup_upd > 1000
ORDER BY n_tup_upd - n_tup_hot_upd DESC
LIMIT 20;
