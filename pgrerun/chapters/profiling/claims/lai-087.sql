SELECT 'debug-only checks are switched as one, when the server is compiled' AS fact,
       context = 'internal' AS so
FROM assertions
