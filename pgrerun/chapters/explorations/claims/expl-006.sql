WITH usual AS (FROM writers WHERE bgwriter = 'as by default')
SELECT 'most pages are written for a buffer or by a checkpoint' AS fact,
       client_backend + checkpointer > background_writer AS so, true AS essential
FROM usual
UNION ALL
SELECT 'nobody writes a page at another time', background_writer = 0, true FROM usual
UNION ALL
SELECT 'a backend that needs a buffer writes the page in it', client_backend > 0, false FROM usual
UNION ALL
SELECT 'a checkpoint writes what is dirty', checkpointer > 0, false FROM usual
