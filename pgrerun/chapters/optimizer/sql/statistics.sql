-- Statistics: what the optimizer knows, and what it is told by hand (PostgreSQL 18).

-- name: known
SELECT count(*) FROM pg_stats
WHERE schemaname = current_schema() AND tablename = :'relation';

-- name: correlation
SELECT correlation FROM pg_stats
WHERE schemaname = current_schema() AND tablename = :'relation' AND attname = :'attribute';

-- name: greatest
-- The end of the histogram.
SELECT (histogram_bounds::text::int[])[array_upper(histogram_bounds::text::int[], 1)] FROM pg_stats
WHERE schemaname = current_schema() AND tablename = :'relation';

-- name: extremes
SELECT pg_restore_attribute_stats(
    'schemaname', current_schema()::text, 'relname', :'relation',
    'attname', :'attribute', 'inherited', false,
    'null_frac', 0::real, 'avg_width', 4, 'n_distinct', -1::real,
    'histogram_bounds', :'bounds'::text);

-- name: ends_of_postgres95
INSERT INTO pg_statistic (starelid, staattnum, staop, stalokey, stahikey)
SELECT c.oid, a.attnum, o.oid, '0'::text, :'greatest'::text
FROM pg_class c, pg_attribute a, pg_operator o
WHERE c.relname = :'relation' AND a.attrelid = c.oid AND a.attname = 'unique2'
AND o.oprname = :'operator' AND o.oprleft = '23'::oid AND o.oprright = '23'::oid;

-- name: ordered
SELECT pg_restore_attribute_stats(
    'schemaname', current_schema()::text, 'relname', :'relation',
    'attname', :'attribute', 'inherited', false, 'correlation', :correlation::real);

-- name: gather
ALTER TABLE spread ALTER :"attribute" SET STATISTICS :target;
ANALYZE spread;
