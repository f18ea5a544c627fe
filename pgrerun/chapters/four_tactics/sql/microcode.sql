-- name: log_each_time
-- the server's own logarithm, hidden from the planner
CREATE OR REPLACE FUNCTION log_each_time(float8) RETURNS float8
LANGUAGE internal VOLATILE STRICT AS 'dlog1';

-- name: computed_for_every_tuple
SELECT p.pnum FROM parts_3360 AS p WHERE p.qoh < log_each_time(9.5) * p.weight;

-- name: crc32c
SELECT max(crc32c((SELECT convert_to(repeat(md5(:'seed'), :kilobytes * 32), 'UTF8'))))
FROM generate_series(1, :times);

-- name: crc32
SELECT max(crc32((SELECT convert_to(repeat(md5(:'seed'), :kilobytes * 32), 'UTF8'))))
FROM generate_series(1, :times);

-- name: as_text
SELECT p.qoh FROM parts_wide AS p WHERE p.pnum = 17;

-- name: ahead
SET plan_cache_mode = force_custom_plan;
PREPARE lookup (int) AS SELECT p.qoh FROM parts_wide AS p WHERE p.pnum = $1;
