-- name: scanned
CREATE TABLE scanned (n int) WITH (autovacuum_enabled = off);
INSERT INTO scanned SELECT generate_series(1, :tuples);

-- name: counted
CREATE TABLE counted (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO counted SELECT n, 0 FROM generate_series(0, :clients - 1) AS n;

-- name: customers
CREATE TABLE customers (id int, discount int) WITH (autovacuum_enabled = off);
INSERT INTO customers SELECT n, n FROM generate_series(0, :customers - 1) AS n;

-- name: orders
-- nearly all are open and of the web
CREATE TABLE :"orders" (id int PRIMARY KEY, customer int, state text, kind text)
    WITH (autovacuum_enabled = off);
INSERT INTO :"orders"
SELECT n, n % :customers,
       CASE WHEN n % 20 = 0 THEN 'Done' ELSE 'Open' END,
       CASE WHEN n % 20 = 1 THEN 'Shop' ELSE 'Web' END
FROM generate_series(1, :tuples) AS n;
