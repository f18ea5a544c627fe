-- Waiting for something is having one in a hundred active backends wait for it.
SELECT commits || ' commits: at least one in a hundred active writers waits for the commit log' AS fact,
       coalesce(sum(backends) FILTER (event IN ('XactSLRU', 'XactBuffer', 'XactGroupUpdate', 'SLRURead', 'SLRUWrite')), 0)
       >= 0.01 * sum(backends) AS so
FROM writer_waits GROUP BY commits ORDER BY commits
