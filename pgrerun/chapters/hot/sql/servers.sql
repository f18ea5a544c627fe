-- name: vacuumed
SELECT last_autovacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'accounts';

-- name: autovacuum_came
-- Whether a visit to accounts is over or at work, in the words of PostgreSQL 8.3.
SELECT last_autovacuum IS NOT NULL OR EXISTS (
    SELECT 1 FROM pg_stat_activity
    WHERE current_query LIKE '%VACUUM%accounts%' AND procpid <> pg_backend_pid()
) FROM pg_stat_user_tables WHERE relname = 'accounts';

-- name: index_on_abalance
CREATE INDEX accounts_abalance ON accounts (abalance);
