-- Pages that a lookup reads by the primary key and by the covering index, at the two ends between
-- which the talk leaves open where it began. A tenth more or less is still the printed gain.
WITH reads AS (
    SELECT in_memory,
           max(table_reads + index_reads) FILTER (index = 'primary key') AS by_key,
           max(table_reads + index_reads) FILTER (index = 'covering index') AS covered
    FROM first_lookups WHERE in_memory IN (0, 100) GROUP BY in_memory
),
print AS (
    SELECT over_primary_key AS gain FROM printed.access_paths_lookups_derived WHERE key = 'covering'
)
SELECT 'with nothing in memory and with all of the index there, it spares reads' AS fact,
       bool_and(by_key > 1.05 * covered) AS so
FROM reads
UNION ALL
SELECT 'the printed gain lies between these two',
       bool_and(CASE in_memory WHEN 0 THEN by_key <= 1.1 * gain * covered
                               ELSE 1.1 * by_key >= gain * covered END)
FROM reads, print
