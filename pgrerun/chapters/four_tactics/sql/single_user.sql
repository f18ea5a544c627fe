-- A single-user backend takes a line as a command. `look` is what the kernel has counted of this
-- very process until now, and the time.

-- name: look
SELECT extract(epoch FROM clock_timestamp()) AS at, pg_read_file('/proc/self/io', 0, 10000) AS io, pg_read_file('/proc/self/status', 0, 10000) AS status, pg_read_file('/proc/self/schedstat', 0, 100) AS computed;
