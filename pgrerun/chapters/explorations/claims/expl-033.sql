WITH short AS (
    SELECT shared.batches < alone.batches AS fewer
    FROM join_batches alone JOIN join_batches shared USING (work_mem_kb)
    WHERE NOT alone.parallel_hash AND shared.parallel_hash AND alone.batches > 1
)
SELECT 'where one process needs several batches, it sometimes needs fewer' AS fact,
       coalesce(bool_or(fewer), false) AS so, true AS essential
FROM short
UNION ALL
SELECT 'it always does', coalesce(bool_and(fewer), false), false FROM short
