-- Relations beside those of the report, which pgrerun.lab.relations loads.

-- name: fresh
CREATE TABLE fresh (key int4) WITH (autovacuum_enabled = off);

-- name: watched
CREATE TABLE fresh (key int4) WITH (autovacuum_analyze_threshold = 10);

-- name: keys
INSERT INTO fresh SELECT generate_series(:first, :last);

-- name: index
CREATE INDEX :"index" ON :"relation" (:"attribute");

-- name: spread
CREATE TABLE spread (even int4, skewed int4) WITH (autovacuum_enabled = off);

-- name: spread_rows
INSERT INTO spread SELECT n, floor(:tuples * power((n + 0.5) / :tuples, 4))
FROM generate_series(0, :tuples - 1) AS n;

-- name: laid_out
CREATE TABLE laid_out (key int4, string text) WITH (autovacuum_enabled = off);

-- name: clustered_rows
INSERT INTO laid_out SELECT n, repeat('x', 200) FROM generate_series(0, :tuples - 1) AS n
ORDER BY n;

-- name: shuffled_rows
INSERT INTO laid_out SELECT n, repeat('x', 200) FROM generate_series(0, :tuples - 1) AS n
ORDER BY n * 4871 % 10007;

-- name: cluster
CLUSTER reordered USING reordered_key;
ANALYZE reordered;

-- name: jumps
-- How often a walk in the order of an attribute goes to another page.
SELECT count(*) FROM (
    SELECT page, lag(page) OVER () AS previous FROM (
        SELECT (ctid::text::point)[0] AS page FROM reordered ORDER BY :"attribute", ctid
    ) AS walk
) AS steps WHERE page <> previous;
