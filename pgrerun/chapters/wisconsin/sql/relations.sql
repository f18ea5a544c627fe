-- name: bprime
-- the first tenth of the second large relation, in the order of unique2
CREATE TABLE :"relation" AS SELECT * FROM :"source" WHERE unique2 < :tuples ORDER BY unique2;

-- name: bprime_in_duckdb
CREATE OR REPLACE TABLE bprime AS SELECT * FROM tenk2 WHERE unique2 < :tuples ORDER BY unique2;

-- name: index
CREATE INDEX :"index" ON :"relation" (:"attribute");

-- name: vacuum
VACUUM (FREEZE, ANALYZE) :"relation";

-- name: complete
-- the last index to be made says of what size all relations are
COMMENT ON INDEX tenk2_with_onepercent IS :'said';

-- name: said
SELECT max(obj_description(oid, 'pg_class')) FROM pg_class
WHERE relname = 'tenk2_with_onepercent' AND pg_table_is_visible(oid);

-- name: tuple_on_page
SELECT max(lp_len), max(t_hoff) FROM heap_page_items(get_raw_page('tenk1', 0));
