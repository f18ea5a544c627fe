-- The relations of Experiments 2 to 4. Their tuples come from the generator of the Wisconsin
-- relations; the primary key is on unique2, and the heap is in its order: the slides'
-- "clustered index".

-- name: key
ALTER TABLE :"relation" ADD PRIMARY KEY (unique2);

-- name: never_vacuumed
-- A copy as CREATE TABLE leaves it: no page is marked all-visible.
CREATE TABLE hundredktup_new WITH (autovacuum_enabled = off) AS SELECT * FROM hundredktup;

-- name: analyze
ANALYZE :"relation";

