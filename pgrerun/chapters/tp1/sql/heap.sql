-- name: append
INSERT INTO history VALUES (:number, 1, 1, 10.0, repeat('x', 30));

-- name: appended
SELECT (ctid::text::point)[0]::int AS page, count(*) AS tuples FROM history
GROUP BY page ORDER BY page;

-- name: replace
UPDATE branch SET balance = balance + 10.0 WHERE bid = (SELECT max(bid) FROM branch)
RETURNING ctid::text;
