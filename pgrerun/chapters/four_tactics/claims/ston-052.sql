WITH sent AS (
    SELECT query, tuples, sum(messages_written) AS messages FROM ingres_benchmark
    WHERE organization <> 'hash' AND processes = 'together' GROUP BY query, tuples
    HAVING EXISTS (SELECT 1 FROM ingres_benchmark WHERE query = 'i')
), print AS (SELECT max(messages) AS messages FROM printed.four_tactics_access)
SELECT 'a command exchanges as many messages whatever the size of its table' AS fact,
       bool_and(few = most) AS so, true AS essential
FROM (SELECT min(messages) AS few, max(messages) AS most FROM sent GROUP BY query) HAVING count(*) > 0
UNION ALL
SELECT printf('each command exchanges %d', max(print.messages)::INT), bool_and(sent.messages = print.messages), true
FROM sent, print HAVING count(*) > 0
UNION ALL
SELECT printf('the shortest exchanges %d', max(print.messages)::INT), bool_and(sent.messages = print.messages), false
FROM sent, print WHERE query = 'a' HAVING count(*) > 0
