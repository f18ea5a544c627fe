-- What each keeps with the largest pool, which in 9.2 is its cap.
SELECT 'in ' || build AS part, max(kilobytes) AS value
FROM clog_buffers_on_builds GROUP BY build ORDER BY build
