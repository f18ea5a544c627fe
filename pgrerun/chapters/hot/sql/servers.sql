-- name: vacuumed
SELECT last_autovacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'accounts';

-- name: relations_vacuumed
SELECT count(last_autovacuum) FROM pg_stat_user_tables;

-- name: index_on_abalance
CREATE INDEX accounts_abalance ON accounts (abalance);
