-- What a client asks for ahead, and what the planner makes of it.

-- name: prepare
PREPARE of_1981 (int) AS SELECT $1 + 1;

-- name: prepared
SELECT count(*) = 1, bool_or(to_jsonb(p) ? 'generic_plans')
FROM pg_prepared_statements AS p WHERE name = 'of_1981';

-- name: skewed
CREATE TABLE skewed_parts (pnum int, color text) WITH (autovacuum_enabled = off);

-- name: fill_skewed
-- nine tuples of ten are gray, and one in a thousand is black
INSERT INTO skewed_parts
SELECT n, CASE WHEN n % 10 > 0 THEN 'gray' WHEN n % 1000 = 0 THEN 'black' ELSE 'white' END
FROM generate_series(1, 20000) AS n;
CREATE INDEX skewed_parts_color ON skewed_parts (color);

-- name: by_color
SET max_parallel_workers_per_gather = 0;
PREPARE by_color (text) AS SELECT pnum FROM skewed_parts WHERE color = $1;

-- name: execute
EXECUTE by_color (:'color');

-- name: tuples
SELECT count(*) FROM skewed_parts WHERE color = :'color';

-- name: integer_beside_float
SELECT pnum FROM parts WHERE weight::float8 + 13 = 100;

-- name: logarithm_of_a_constant
SELECT pnum FROM parts WHERE qoh < ln(9.5::float8) * weight;

-- name: log_each_time
-- the server's own logarithm, hidden from the planner
CREATE OR REPLACE FUNCTION log_each_time(float8) RETURNS float8
LANGUAGE internal VOLATILE STRICT AS 'dlog1';

-- name: computed_once
SELECT count(*) FROM parts WHERE qoh < ln(9.5::float8) * weight;

-- name: computed_for_every_tuple
SELECT count(*) FROM parts WHERE qoh < log_each_time(9.5) * weight;

-- name: no_tuples
SELECT pnum FROM parts WHERE pnum < 0;
