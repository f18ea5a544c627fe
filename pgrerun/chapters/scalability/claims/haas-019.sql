-- The cap shows where the size adapts to the largest pool; the others are told beside.
SELECT 'shared_buffers ' || shared_buffers AS part, kilobytes AS value,
       kilobytes = max(kilobytes) OVER () AS essential
FROM clog_buffers ORDER BY kilobytes
