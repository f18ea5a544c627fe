-- Queries that the report hasn't.

-- name: range
SELECT * FROM :"relation" WHERE :"attribute" < :upper AND :"attribute" > :lower;

-- name: non_equal
SELECT count(*) FROM :"one" a, :"two" b WHERE a.unique2 < b.unique2;

-- name: two_selectivities
SELECT * FROM tenk1 a, tenk2 b
WHERE a.unique2 = b.unique2 AND a.unique1 < :bound1 AND b.unique1 < :bound2;

-- name: below
PREPARE below(int) AS SELECT * FROM :"relation" WHERE unique2 < $1;
