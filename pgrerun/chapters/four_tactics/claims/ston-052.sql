-- A message is what a process sends another until that one answers: one block of 128 bytes, or several. So
-- there are as many answers as requests, at least one for each process but the terminal's; and no more than
-- blocks that come back, to the terminal's process, from decomp70 to the parser, or from an overlay. Where
-- these are as few, they are the answers. The printed tables are of ISAM; of query h, for which this INGRES
-- sorts a temporary relation there as the memorandum's can't have, both organizations are told.
WITH blocks AS (
    SELECT query, tuples, organization, count_if(messages_written > 0) - 1 AS answering,
           sum(CASE process WHEN 'monitor' THEN messages_read - messages_written WHEN 'parser' THEN messages_read
                            WHEN 'decomp70' THEN 0 ELSE messages_written END) AS returned
    FROM ingres_benchmark
    WHERE fillfactor = 100 AND (organization <> 'hash' OR query = 'h') AND processes = 'together'
          AND EXISTS (SELECT 1 FROM ingres_benchmark WHERE query = 'i')
    GROUP BY query, tuples, organization
), sent AS (
    SELECT query, organization, query <> 'h' AS as_printed,
           CASE WHEN returned = answering THEN 2 * answering END AS messages
    FROM blocks
), alike AS (
    SELECT CASE WHEN count(messages) = count(*) OR min(messages) < max(messages)
                THEN min(messages) = max(messages) END AS so
    FROM sent WHERE as_printed GROUP BY query
), four AS (
    SELECT as_printed, organization, number, messages = number AS so
    FROM sent, (SELECT max(messages) AS number FROM printed.four_tactics_access) AS print
)
SELECT 'a command exchanges as many messages whatever the size of its table' AS fact,
       CASE WHEN count(so) = count(*) OR NOT bool_and(so) THEN bool_and(so) END AS so, true AS essential
FROM alike HAVING count(*) > 0
UNION ALL
SELECT printf('each command exchanges %d', max(number)::INT),
       CASE WHEN count(so) = count(*) OR NOT bool_and(so) THEN bool_and(so) END, true
FROM four WHERE as_printed HAVING count(*) > 0
UNION ALL
SELECT format('so does query h, for which this INGRES has a plan of its own, on {}', organization), bool_and(so), false
FROM four WHERE NOT as_printed GROUP BY organization
