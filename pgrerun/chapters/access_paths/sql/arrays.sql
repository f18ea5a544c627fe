-- Arrays: as a list of keys, and in a column.

-- name: keys_far_apart
SELECT array_agg(n * :step + 1)::text FROM generate_series(0, :keys - 1) AS n;

-- name: neighbouring_keys
SELECT array_agg(n + 1)::text FROM generate_series(0, :keys - 1) AS n;

-- name: all_of_list
SELECT aid, bid FROM accounts WHERE aid = ANY (:'keys') ORDER BY aid;

-- name: first_of_list
SELECT aid, bid FROM accounts WHERE aid = ANY (:'keys') ORDER BY aid LIMIT 10;

-- name: tagged
CREATE TABLE tagged (tags int[]) WITH (autovacuum_enabled = off);

-- name: copy_tags
COPY tagged FROM STDIN;

-- name: without_statistics
-- both commands leave the true number of tuples behind, VACUUM no more than that
VACUUM tagged;

-- name: with_statistics
ANALYZE tagged;

-- name: overlaps
SELECT 1 FROM tagged WHERE tags && :'elements';

-- name: is_contained_by
SELECT 1 FROM tagged WHERE tags <@ :'elements';

-- name: drop_tagged
DROP TABLE tagged;
