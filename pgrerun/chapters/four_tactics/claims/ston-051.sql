WITH found AS (
    SELECT CASE WHEN query IN ('b', 'c', 'd') THEN 'queries b, c and d on ' || tuples || CASE tuples WHEN 1 THEN ' row' ELSE ' rows' END
                ELSE 'query ' || query END AS command,
           buffers, asked, requests
    FROM unix_cache
)
SELECT 'UNIX reads fewer pages for ' || command || ' than INGRES asks it for' AS fact,
       bool_and(requests < asked) AS so, true AS essential
FROM found WHERE buffers = 128 GROUP BY command
UNION ALL
SELECT 'the same of each command with a cache of ' || buffers || ' pages', bool_and(requests < asked), false
FROM found WHERE buffers <> 128 GROUP BY buffers
ORDER BY essential DESC, fact
