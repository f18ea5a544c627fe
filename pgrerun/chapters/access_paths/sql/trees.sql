-- GiST, SP-GiST and B-trees.

-- name: points
-- the same random points in every run: random() begins anew
CREATE TABLE points (p point) WITH (autovacuum_enabled = off);
SELECT setseed(0.5);
INSERT INTO points SELECT point(random(), random()) FROM generate_series(1, :objects);
VACUUM (FREEZE, ANALYZE) points;

-- name: gist_row_by_row
CREATE INDEX searched ON points USING gist (p points_unsorted) WITH (buffering = off);

-- name: gist_buffered
CREATE INDEX searched ON points USING gist (p points_unsorted) WITH (buffering = on);

-- name: gist_sorted
CREATE INDEX searched ON points USING gist (p);

-- name: spgist
CREATE INDEX searched ON points USING spgist (p);

-- name: search_box
-- boxes along the diagonal of the unit square and beside it, the same in every run
SELECT count(*) FROM points
WHERE p <@ box(point(0.98 * :number / 25, 0.98 * (:number * 7 % 25) / 25),
               point(0.98 * :number / 25 + 0.02, 0.98 * (:number * 7 % 25) / 25 + 0.02));

-- name: addresses
CREATE TABLE :"relation" (url text) WITH (autovacuum_enabled = off);
INSERT INTO :"relation"
SELECT format('https://www.example.org/archive/%s/%s/message-%s.html', 2000 + mod(n, 12),
              1 + mod(abs(hashint4(n)::bigint), 28), n)
FROM generate_series(1, :objects) AS n;
VACUUM (FREEZE, ANALYZE) :"relation";

-- name: spgist_text
CREATE INDEX searched ON :"relation" USING spgist (url);

-- name: btree_text
CREATE INDEX searched ON :"relation" USING btree (url text_pattern_ops);

-- name: search_prefix
SELECT count(*) FROM :"relation" WHERE url LIKE :'prefix';

-- name: drop_index
DROP INDEX IF EXISTS searched;

-- name: checkpoint
CHECKPOINT;

-- name: keep_index
ALTER INDEX searched RENAME TO :"kept";

-- name: grown
CREATE TABLE grown (k int) WITH (autovacuum_enabled = off);

-- name: index_keys
CREATE INDEX grown_k ON grown (k);

-- name: insert_ascending
INSERT INTO grown SELECT n FROM generate_series(1, :rows) AS n;

-- name: insert_in_random_order
INSERT INTO grown SELECT n FROM generate_series(1, :rows) AS n ORDER BY hashint4(n), n;

-- name: vacuum_grown
VACUUM (FREEZE, ANALYZE) grown;

-- name: quality
SELECT avg_leaf_density, leaf_fragmentation FROM pgstatindex('grown_k');

-- name: find_one
SELECT k FROM grown WHERE k = :first;

-- name: find_range
SELECT count(k) FROM grown WHERE k BETWEEN :first AND :last;

-- name: gist
CREATE INDEX searched ON points USING gist (p);
