-- The benchmark's nine queries in SQL, joins by tuple substitution as INGRES decomposed them.

-- name: as_ingres
-- A release without one of these settings has nothing that it would switch off.
SELECT set_config(name, CASE vartype WHEN 'bool' THEN 'off' ELSE '0' END, false)
FROM pg_settings
WHERE name IN ('max_parallel_workers_per_gather', 'enable_hashjoin', 'enable_mergejoin',
               'enable_material', 'enable_memoize');

-- name: a
SELECT 1 AS a;

-- name: b
SELECT p.pnum FROM :"relation" AS p;

-- name: c
SELECT p.pname, p.pnum FROM :"relation" AS p WHERE p.pnum > 3 OR p.pname = 'processor' OR p.color = 'black';

-- name: d
SELECT p.pnum FROM :"relation" AS p WHERE p.qoh < ln(9.5::float8) * p.weight;

-- name: e
SELECT p.qoh FROM :"relation" AS p WHERE p.pnum < 2500;

-- name: f
SELECT p.qoh, q.qoh FROM :"relation" AS p, :"relation" AS q WHERE p.pnum = q.pnum;

-- name: g
SELECT p.qoh, q.qoh FROM :"relation" AS p, :"relation" AS q WHERE p.pnum = q.pnum AND p.color = 'black';

-- name: h
SELECT p.qoh FROM :"relation" AS p, :"relation" AS q WHERE p.pnum = q.pnum AND p.pnum < 2500;

-- name: i
SELECT p.qoh, q.qoh FROM :"relation" AS p, :"relation" AS q WHERE p.pnum = q.pnum AND p.color = 'black' AND p.qoh < ln(9.5::float8) * p.weight AND q.qoh < ln(9.5::float8) * p.weight;
