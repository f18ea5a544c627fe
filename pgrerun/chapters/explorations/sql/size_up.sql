-- Experiment 3: unique2 has an index, unique3 has none.

-- name: point_query
SELECT * FROM :"relation" WHERE :"attribute" = :key;

-- name: waited
SELECT blk_read_time FROM pg_stat_database WHERE datname = current_database();
