-- name: vacuumed
SELECT last_autovacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'accounts';

-- name: index_on_abalance
CREATE INDEX accounts_abalance ON accounts (abalance);
