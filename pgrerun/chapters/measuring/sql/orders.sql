-- A query, and two fixes. Of an expression the planner knows nothing, and takes it that one row in
-- two hundred has a given value.

-- name: query
SELECT sum(c.discount) FROM :"orders" AS o JOIN customers AS c ON c.id = o.customer
WHERE lower(o.state) = 'open' AND lower(o.kind) = 'web';

-- name: index
CREATE INDEX orders_fix ON orders_indexed (lower(state), lower(kind));

-- name: statistics
CREATE STATISTICS orders_statistics_fix ON (lower(state)), (lower(kind)) FROM orders_statistics;

-- name: rare
-- a query that the index is for
SELECT count(*) FROM orders_indexed WHERE lower(state) = 'none' AND lower(kind) = 'none';
