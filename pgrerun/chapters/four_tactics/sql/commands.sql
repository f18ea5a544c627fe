-- The commands on PARTS that PostgreSQL and DuckDB run alike.

-- name: short
SELECT qoh FROM parts WHERE pnum = 17;

-- name: long
SELECT count(*) FROM parts WHERE qoh < ln(9.5::float8) * weight AND pname <> 'memory';

-- name: query_d
SELECT count(*) FROM parts WHERE qoh < ln(9.5::float8) * weight;

-- name: scan
SELECT count(*) FROM parts;
