-- The release notes of 9.4: "Allow multiple backends to insert into WAL buffers concurrently".
SELECT '' AS part, 9.4 AS value, value AS hoped_for FROM printed.scalability_idle WHERE key = 'wal_fixed_in'
