-- What an update can be like: one table for each case, every row of which is updated once.

-- name: table
CREATE TABLE cases (id int PRIMARY KEY, v int, pad text STORAGE EXTERNAL)
    WITH (autovacuum_enabled = off, fillfactor = :fillfactor);
INSERT INTO cases SELECT n, n, repeat('x', :width) FROM generate_series(1, :rows) AS n;

-- name: partitioned
CREATE TABLE cases (id int, v int, pad text STORAGE EXTERNAL, PRIMARY KEY (id, v))
    PARTITION BY RANGE (v);
CREATE TABLE cases_low PARTITION OF cases FOR VALUES FROM (0) TO (:rows + 1)
    WITH (autovacuum_enabled = off, fillfactor = :fillfactor);
CREATE TABLE cases_high PARTITION OF cases FOR VALUES FROM (:rows + 1) TO (2 * :rows + 1)
    WITH (autovacuum_enabled = off, fillfactor = :fillfactor);
INSERT INTO cases SELECT n, n, repeat('x', :width) FROM generate_series(1, :rows) AS n;

-- name: btree
CREATE INDEX ON cases (v);

-- name: brin
CREATE INDEX ON cases USING brin (v);

-- name: brin_bloom
CREATE INDEX ON cases USING brin (v int4_bloom_ops);

-- name: hash
CREATE INDEX ON cases USING hash (v);

-- name: include
CREATE INDEX ON cases (id) INCLUDE (v);

-- name: where
CREATE INDEX ON cases (id) WHERE v > 0;

-- name: expression
CREATE INDEX ON cases ((v > 0));

-- name: update
UPDATE cases SET v = v + 1 WHERE id = :row;

-- name: update_same
UPDATE cases SET v = v WHERE id = :row;

-- name: update_longer
UPDATE cases SET pad = pad || 'xxxxxxxx' WHERE id = :row;

-- name: update_wide
UPDATE cases SET pad = repeat('x', 1500) WHERE id = :row;

-- name: update_toast
UPDATE cases SET pad = repeat('y', 3000) WHERE id = :row;

-- name: update_partition
UPDATE cases SET v = v + 100 WHERE id = :row;

-- name: layout
-- tuples on the first page, and the width of one
SELECT count(*), max(pg_column_size(a.*)) FROM :"table" AS a WHERE ctid < '(1,0)';
