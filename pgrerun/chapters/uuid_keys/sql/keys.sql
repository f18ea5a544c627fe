-- name: table
DROP TABLE IF EXISTS item;
CREATE TABLE item (key uuid PRIMARY KEY) WITH (autovacuum_enabled = off);

-- name: sequential
-- Each key above all keys before it, as a counter or uuidv7() gives them.
INSERT INTO item
SELECT lpad(to_hex(n), 32, '0')::uuid
FROM generate_series(:first, :last) AS n;

-- name: random
-- Keys that come in no order; of the number and the seed, so that a rerun has the same.
INSERT INTO item
SELECT md5(n || ' ' || :seed)::uuid
FROM generate_series(:first, :last) AS n;
