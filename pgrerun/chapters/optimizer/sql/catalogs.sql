-- What of section 4's suggestions can be looked up.

-- name: catalogs
SELECT count(*) FROM pg_class
WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r';

-- name: indexed
SELECT count(*) FROM pg_class c
WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
    AND EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid);

-- name: hashed
SELECT count(*) FROM pg_class c
WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND EXISTS (
    SELECT 1 FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
    WHERE indrelid = c.oid AND amname = 'hash');

-- name: attribute
SELECT * FROM pg_attribute WHERE attrelid = 1259 AND attnum = 1;

-- name: assertions
SHOW debug_assertions;

-- name: daemon
SELECT boot_val FROM pg_settings WHERE name = 'autovacuum';

-- name: in_order
SELECT count(*) FROM pg_stats
WHERE schemaname = current_schema() AND attname = 'unique2' AND correlation > 0.99;
