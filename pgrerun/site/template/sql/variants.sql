-- name: first
DROP TABLE IF EXISTS item;
CREATE TABLE item (key int PRIMARY KEY, content text);

-- name: second
DROP TABLE IF EXISTS item;
CREATE TABLE item (key int PRIMARY KEY, content text) WITH (fillfactor = 50);

-- name: load
INSERT INTO item SELECT n, repeat('x', 100) FROM generate_series(1, :rows) AS n;
