-- name: ruled
CREATE TABLE ruled AS SELECT * FROM tenk1;

-- name: rules
CREATE RULE on_delete AS ON DELETE TO ruled DO ALSO NOTHING;
CREATE RULE on_update AS ON UPDATE TO ruled DO ALSO NOTHING;

-- name: prewarm
SELECT sum(pg_prewarm(oid)) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i');
