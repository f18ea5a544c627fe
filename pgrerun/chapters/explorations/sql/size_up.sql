-- Experiment 3: unique2 has an index, unique3 has none.

-- name: point_query
SELECT * FROM :"relation" WHERE :"attribute" = :key;
