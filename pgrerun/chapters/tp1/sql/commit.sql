-- name: undecided
-- a relation of its own: TP1 would wait for the accounts that an open transaction has changed
CREATE TABLE undecided (number int, string text) WITH (autovacuum_enabled = off);

-- name: fill_undecided
INSERT INTO undecided SELECT n, 'as it was' FROM generate_series(1, 1000) AS n;

-- name: leave_undecided
UPDATE undecided SET string = 'never committed';

-- name: file
SELECT pg_relation_filepath('undecided');

-- name: after_recovery
SELECT (SELECT count(*) FROM history),
       (SELECT count(*) FROM undecided WHERE string = 'as it was'),
       (SELECT count(*) FROM undecided WHERE string = 'never committed');
