-- What is counted on each release, an experiment each.

-- name: updated
-- The second index has to be told of every update, so none of them is heap-only.
DROP TABLE IF EXISTS updated;
CREATE TABLE updated (id int PRIMARY KEY, v int, pad text)
    WITH (autovacuum_enabled = off, fillfactor = 90);
CREATE INDEX updated_v ON updated (v);
INSERT INTO updated SELECT n, n, repeat('x', 80) FROM generate_series(1, :tuples) AS n;

-- name: summarized
DROP TABLE IF EXISTS summarized;
CREATE TABLE summarized (id int, v int) WITH (autovacuum_enabled = off, fillfactor = 40);
CREATE INDEX summarized_v ON summarized USING brin (v);
INSERT INTO summarized SELECT n, n FROM generate_series(1, 1000) AS n;
UPDATE summarized SET v = v + 1;

-- name: duplicates
-- A key of twenty for each row.
DROP TABLE IF EXISTS duplicates;
CREATE TABLE duplicates WITH (autovacuum_enabled = off) AS
    SELECT n % 20 AS kind FROM generate_series(1, :tuples) AS n;
CREATE INDEX duplicates_kind ON duplicates (kind);

-- name: correlated
-- Two columns that say the same.
DROP TABLE IF EXISTS correlated;
CREATE TABLE correlated WITH (autovacuum_enabled = off) AS
    SELECT n % 50 AS x, n % 50 AS y FROM generate_series(1, :tuples) AS n;

-- name: with_statistics
CREATE STATISTICS of_correlated (dependencies) ON x, y FROM correlated;

-- name: by_correlated
SELECT * FROM correlated WHERE x = 1 AND y = 1;

-- name: numbers
DROP TABLE IF EXISTS numbers;
CREATE TABLE numbers WITH (autovacuum_enabled = off) AS
    SELECT n AS one, n / 10 AS tenth, n % 4 AS few, n AS other
    FROM generate_series(1, :tuples) AS n;
CREATE INDEX numbers_one ON numbers (one);
CREATE INDEX numbers_tenth ON numbers (tenth);
CREATE INDEX numbers_few ON numbers (few, other);
VACUUM ANALYZE numbers;

-- name: grouped
SELECT other, count(*) FROM numbers GROUP BY other;

-- name: little_memory
SELECT set_config('work_mem', '64kB', true), set_config('enable_sort', 'off', true);

-- name: tight_memory
-- Room for each group, as much as a release takes it to need or a little less.
SELECT set_config('work_mem', (count(*) * 58 / 1024) || 'kB', true) FROM numbers;
SELECT set_config(name, '1', true) FROM pg_settings WHERE name = 'hash_mem_multiplier';

-- name: ordered
SELECT tenth, other FROM numbers ORDER BY tenth, other LIMIT 10;

-- name: summed
SELECT count(*) FROM numbers;

-- name: parallel
-- Workers for a small table, too. A release without these settings has no workers.
SELECT set_config(name, CASE unit WHEN '8kB' THEN '0' ELSE '2' END, true)
FROM pg_settings
WHERE name IN ('max_parallel_workers_per_gather', 'min_parallel_relation_size',
               'min_parallel_table_scan_size');
SELECT set_config(name, '0', true)
FROM pg_settings WHERE name IN ('parallel_setup_cost', 'parallel_tuple_cost');

-- name: named
WITH named AS (SELECT * FROM numbers) SELECT other FROM named WHERE one = 7;

-- name: by_index
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- name: listed
SELECT count(*) FROM numbers WHERE one = ANY (:'keys'::int[]);

-- name: skipped
-- The index's first column isn't asked for.
SELECT few, other FROM numbers WHERE other = 4711;

-- name: locked
-- Forty tables, as a query over partitions has.
DO $$BEGIN
    FOR n IN 1..40 LOOP
        EXECUTE 'CREATE TABLE IF NOT EXISTS locked_' || n || ' ()';
    END LOOP;
END$$;

-- name: lock
DO $$BEGIN
    FOR n IN 1..40 LOOP
        EXECUTE 'LOCK TABLE locked_' || n || ' IN ACCESS SHARE MODE';
    END LOOP;
END$$;
SELECT count(*) FROM pg_locks
WHERE pid = pg_backend_pid() AND fastpath AND relation::regclass::text LIKE 'locked%';
