SELECT 'a backend that needs a buffer writes the page in it' AS fact, client_backend > 0 AS so
FROM writers WHERE bgwriter = 'as by default'
UNION ALL
SELECT 'a checkpoint writes what is dirty', checkpointer > 0
FROM writers WHERE bgwriter = 'as by default'
UNION ALL
SELECT 'nobody writes a page at another time', background_writer = 0
FROM writers WHERE bgwriter = 'as by default'
