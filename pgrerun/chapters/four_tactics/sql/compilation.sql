-- What a client asks for ahead, and what the planner makes of it.

-- name: skewed
CREATE TABLE skewed_parts (pnum int, color text) WITH (autovacuum_enabled = off);

-- name: fill_skewed
-- nine tuples of ten are gray, and one in a thousand is black
INSERT INTO skewed_parts
SELECT n, CASE WHEN n % 10 > 0 THEN 'gray' WHEN n % 1000 = 0 THEN 'black' ELSE 'white' END
FROM generate_series(1, 20000) AS n;
CREATE INDEX skewed_parts_color ON skewed_parts (color);
CREATE INDEX skewed_parts_pnum ON skewed_parts (pnum);

-- name: by_color
SET max_parallel_workers_per_gather = 0;
PREPARE by_color (text) AS SELECT pnum FROM skewed_parts WHERE color = $1;

-- name: execute
EXECUTE by_color (:'color');

-- name: growing
CREATE TABLE growing_parts (pnum int, color text) WITH (autovacuum_enabled = off);

-- name: fill_growing
INSERT INTO growing_parts SELECT n, CASE WHEN n % 10 > 0 THEN 'gray' ELSE 'white' END
FROM generate_series(1, 100) AS n;
CREATE INDEX growing_parts_color ON growing_parts (color);

-- name: whites
SET max_parallel_workers_per_gather = 0;
PREPARE whites (text) AS SELECT pnum FROM growing_parts WHERE color = $1;

-- name: execute_whites
EXECUTE whites ('white');

-- name: grow
INSERT INTO growing_parts SELECT n, CASE WHEN n % 10 > 0 THEN 'gray' ELSE 'white' END
FROM generate_series(101, 20000) AS n;

-- name: tuples
SELECT count(*) FROM skewed_parts WHERE color = :'color';

-- name: foreseen
SELECT count(*) FROM skewed_parts AS p JOIN skewed_parts AS q ON p.pnum = q.pnum WHERE p.color = 'gray';

-- name: unforeseen
-- the same tuples, by a condition of which the planner has no statistics
SELECT count(*) FROM skewed_parts AS p JOIN skewed_parts AS q ON p.pnum = q.pnum WHERE p.color || '' = 'gray';

-- name: integer_beside_float
SELECT pnum FROM parts WHERE weight::float8 + 13 = 100;

-- name: logarithm_of_a_constant
SELECT pnum FROM parts WHERE qoh < ln(9.5::float8) * weight;

-- name: no_tuples
SELECT pnum FROM parts WHERE pnum < 0;

-- name: evaluate_c
SELECT count(*) FROM generate_series(1, :times) AS again,
    LATERAL (SELECT 1 FROM parts AS p WHERE NOT (p.pnum > 3 OR p.pname = 'processor' OR p.color = 'black') AND again > 0 OFFSET 0) AS found;

-- name: evaluate_d
SELECT count(*) FROM generate_series(1, :times) AS again,
    LATERAL (SELECT 1 FROM parts AS p WHERE NOT (p.qoh < ln(9.5::float8) * p.weight) AND again > 0 OFFSET 0) AS found;

-- name: evaluate_long
-- query d in numeric, whose operators take long: integers become numeric, are multiplied and compared
SELECT count(*) FROM generate_series(1, :times) AS again,
    LATERAL (SELECT 1 FROM parts AS p WHERE NOT (p.qoh < ln(9.5::numeric) * p.weight) AND again > 0 OFFSET 0) AS found;

-- name: evaluate_least
-- a single comparison with the last attribute: what a scan takes beside a qualification
SELECT count(*) FROM generate_series(1, :times) AS again,
    LATERAL (SELECT 1 FROM parts AS p WHERE p.qoh < -1 AND again > 0 OFFSET 0) AS found;
