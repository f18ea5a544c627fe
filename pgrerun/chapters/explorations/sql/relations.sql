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

-- name: pages
-- As VACUUM, ANALYZE and CREATE INDEX have noted them.
SELECT c.relname, c.relpages, c.relpages / 128.0, c.relallvisible, i.relpages
FROM pg_class c
JOIN pg_index x ON x.indrelid = c.oid
JOIN pg_class i ON i.oid = x.indexrelid
WHERE c.oid = :'relation'::regclass;
