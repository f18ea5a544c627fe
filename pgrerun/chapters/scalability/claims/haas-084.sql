-- The process array's locks are waited for, and no other lightweight lock longer.
WITH light AS (
    SELECT commits, event IN ('ProcArray', 'ProcArrayGroupUpdate', 'XidGen') AS of_the_array, event, backends
    FROM writer_waits WHERE type IN ('LWLock', 'IPC')
), longest AS (
    SELECT commits, coalesce(sum(backends) FILTER (of_the_array), 0) AS array_waits,
           coalesce(max(backends) FILTER (NOT of_the_array), 0) AS others
    FROM light GROUP BY commits
)
SELECT w.commits || ' commits: no lightweight lock is waited for longer than the process array''s' AS fact,
       coalesce(array_waits, 0) > 0 AND array_waits >= others AS so
FROM (SELECT DISTINCT commits FROM writer_waits) AS w LEFT JOIN longest USING (commits)
ORDER BY w.commits
