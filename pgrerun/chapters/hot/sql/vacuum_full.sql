-- Chains in the second half of a table whose first half is empty, so that VACUUM FULL moves them.

-- name: chained
CREATE TABLE chained (id int PRIMARY KEY, v int) WITH (fillfactor = 50);
INSERT INTO chained SELECT n, 0 FROM generate_series(1, 1000) AS n;

-- name: empty
DELETE FROM chained WHERE id <= 500;

-- name: update
UPDATE chained SET v = v + 1;

-- name: vacuum_full
VACUUM FULL chained;

-- name: find
SELECT id FROM chained WHERE id > 0;
