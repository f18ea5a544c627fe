-- name: clocks
SELECT name, current_setting(name)
FROM pg_settings
WHERE name IN ('autovacuum_naptime', 'bgwriter_delay', 'checkpoint_timeout', 'wal_writer_delay')
ORDER BY name;
