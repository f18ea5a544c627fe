-- Three copies of accounts, which differ in how autovacuum treats them.

-- name: accounts_unvacuumed
CREATE TABLE accounts_unvacuumed (LIKE accounts INCLUDING ALL) WITH (
    fillfactor = :fillfactor, autovacuum_enabled = off,
    autovacuum_vacuum_scale_factor = :scale_factor, autovacuum_vacuum_threshold = 0);
INSERT INTO accounts_unvacuumed SELECT * FROM accounts ORDER BY aid;

-- name: accounts_thread
CREATE TABLE accounts_thread (LIKE accounts INCLUDING ALL) WITH (
    fillfactor = :fillfactor, autovacuum_enabled = on,
    autovacuum_vacuum_scale_factor = :scale_factor, autovacuum_vacuum_threshold = 0);
INSERT INTO accounts_thread SELECT * FROM accounts ORDER BY aid;

-- name: accounts_throttled
CREATE TABLE accounts_throttled (LIKE accounts INCLUDING ALL) WITH (
    fillfactor = :fillfactor, autovacuum_enabled = on,
    autovacuum_vacuum_scale_factor = :scale_factor, autovacuum_vacuum_threshold = 0,
    autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1);
INSERT INTO accounts_throttled SELECT * FROM accounts ORDER BY aid;
