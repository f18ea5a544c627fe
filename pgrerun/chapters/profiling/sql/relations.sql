-- name: tight
CREATE TABLE tight AS
SELECT 0::int4 AS first, unique1, unique2, two, four, ten, twenty, hundred, thousand,
    twothousand, fivethousand, tenthousand, odd, even
FROM tenk1;

-- name: loose
CREATE TABLE loose AS
SELECT 'x'::text AS first, unique1, unique2, two, four, ten, twenty, hundred, thousand,
    twothousand, fivethousand, tenthousand, odd, even
FROM tenk1;

-- name: ruled
CREATE TABLE ruled AS SELECT * FROM tenk1;

-- name: rules
CREATE RULE on_delete AS ON DELETE TO ruled DO ALSO NOTHING;
CREATE RULE on_update AS ON UPDATE TO ruled DO ALSO NOTHING;

-- name: prewarm
SELECT sum(pg_prewarm(oid)) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i');
