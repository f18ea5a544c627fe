-- A fact for each figure, of the build that has the checks and calls which its profile had; the first
-- fetches every attribute. What has no name is many routines of the C library, without those that
-- malloc calls, and takes no place in a list; the function manager's routines take one, as in lai-024.
-- A figure without its build leaves no row, and so sets the claim aside.
WITH states AS (
    SELECT figure, label, variant,
           CASE queries WHEN 'Figure 2.3' THEN 'transactions' ELSE 'scans' END AS query_set
    FROM (VALUES ('first', 'every attribute'), ('second', 'assertions'), ('transactions', 'assertions'),
                 ('third', 'no node checks'), ('fourth', 'empty calls'), ('fifth', 'no assertions'),
                 ('sixth', 'no buffer checks')) AS profiled (stage, variant)
    JOIN printed.profiling_totals ON key = stage
), routines AS (
    SELECT variant, query_set, sum(instructions) AS instructions,
           CASE WHEN starts_with(routine, 'fmgr') THEN 'fmgr' ELSE split_part(routine, '.', 1) END AS name,
           CASE WHEN NOT starts_with(routine, 'fmgr') THEN file END AS source
    FROM postgres95_profile WHERE routine <> '(without a name)' GROUP BY ALL
), places AS (
    SELECT variant, query_set, name,
           rank() OVER (PARTITION BY variant, query_set ORDER BY instructions DESC) AS place
    FROM routines
), figures AS (
    SELECT figure, label,
           bool_or(place <= 10 AND name IN ('malloc', 'palloc', 'MemoryContextAlloc', 'AllocSetAlloc',
                                            'PortalHeapMemoryAlloc', 'PortalVariableMemoryAlloc',
                                            'GlobalMemoryAlloc')) AS so
    FROM states LEFT JOIN places USING (variant, query_set) GROUP BY figure, label
)
SELECT 'as for ' || figure || ' (' || label || ')'
       || ', a routine that allocates memory is among the first ten' AS fact,
       so
FROM figures WHERE (SELECT bool_and(so IS NOT NULL) FROM figures)
ORDER BY split_part(figure, '.', 2)::INTEGER
