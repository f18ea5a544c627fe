-- name: predictable
CREATE TABLE branches_predictable AS SELECT * FROM parts ORDER BY qoh < 100, pnum;

-- name: mixed
CREATE TABLE branches_mixed AS SELECT * FROM parts ORDER BY md5(pnum::text);

-- name: count_half
SELECT count(*) FROM :"relation" WHERE qoh < 100;

-- name: crc32c
SELECT max(crc32c((SELECT convert_to(repeat(md5(:'seed'), :kilobytes * 32), 'UTF8'))))
FROM generate_series(1, :times);

-- name: crc32
SELECT max(crc32((SELECT convert_to(repeat(md5(:'seed'), :kilobytes * 32), 'UTF8'))))
FROM generate_series(1, :times);
