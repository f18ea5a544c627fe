-- Tuples of a full page each, so that every new version has to go elsewhere.

-- name: one_of_each_page
SELECT min(aid) FROM account GROUP BY (ctid::text::point)[0] ORDER BY min(aid);

-- name: replace_one
UPDATE account SET balance = balance + 10.0 WHERE aid = :aid;

-- name: appended
SELECT (ctid::text::point)[0]::int AS page, count(*) AS tuples FROM account
WHERE (ctid::text::point)[0] >= :full GROUP BY page ORDER BY page;

-- name: place
SELECT ctid::text FROM branch WHERE bid = (SELECT max(bid) FROM branch);

-- name: replace
UPDATE branch SET balance = balance + 10.0 WHERE bid = (SELECT max(bid) FROM branch)
RETURNING ctid::text;

-- name: replacing
SELECT xmin::text::bigint FROM branch WHERE bid = (SELECT max(bid) FROM branch);

-- Reading a page removes dead versions from it that nobody can see.
-- name: look_at_every_page
SELECT count(*) FROM :"relation";

-- Dead versions that are still on a page, were it only as a line pointer that an index points to.
-- name: left_to_vacuum
SELECT sum(n_dead_tup)::float8 FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND relname IN ('branch', 'teller', 'account');
