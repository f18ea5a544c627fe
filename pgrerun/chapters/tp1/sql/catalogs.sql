-- More relations, each with a TOAST table and its index: catalogs aren't always read to their end,
-- but pg_index is.

-- name: more_relations
DO $$
BEGIN
    FOR i IN 1..:more LOOP
        EXECUTE format('CREATE TABLE t%s (a int4, b float8, c text)', i);
    END LOOP;
END $$;

-- name: all
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r';

-- name: own_index
CREATE INDEX :"index" ON :"catalog" (:"field");

-- name: copy
CREATE TABLE attribute_copy AS
    SELECT attrelid::int8 * 65536 + attnum AS key, attname FROM pg_attribute WHERE attnum > 0;

-- name: keys
SELECT key FROM attribute_copy ORDER BY key LIMIT 500;

-- name: btree
CREATE INDEX attribute_copy_key ON attribute_copy USING btree (key);

-- name: hash
CREATE INDEX attribute_copy_key ON attribute_copy USING hash (key);

-- name: prepare
VACUUM ANALYZE attribute_copy;
PREPARE lookup (int8) AS SELECT attname FROM attribute_copy WHERE key = $1;

-- name: lookup
EXECUTE lookup(:key);

-- name: drop_index
DEALLOCATE lookup;
DROP INDEX attribute_copy_key;
