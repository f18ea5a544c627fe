-- Tuples that keep their width, and tuples that don't; width(n) is the n-th width of a row.

-- name: same
CREATE OR REPLACE FUNCTION pg_temp.width(n int) RETURNS int LANGUAGE sql
    AS 'SELECT 110';

-- name: little
CREATE OR REPLACE FUNCTION pg_temp.width(n int) RETURNS int LANGUAGE sql
    AS 'SELECT 100 + n % 21';

-- name: much
CREATE OR REPLACE FUNCTION pg_temp.width(n int) RETURNS int LANGUAGE sql
    AS 'SELECT 20 + n * 37 % 201';

-- name: wide
CREATE TABLE wide (id int PRIMARY KEY, v int, pad text)
    WITH (autovacuum_enabled = off, fillfactor = :fillfactor);
INSERT INTO wide SELECT n, 0, repeat('x', pg_temp.width(n)) FROM generate_series(1, :rows) AS n;
