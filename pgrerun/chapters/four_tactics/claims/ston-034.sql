WITH simple AS (
    SELECT query, sum(catalog_reads) AS catalog_reads FROM ingres_benchmark
    WHERE tuples <= 1 AND processes = 'together' GROUP BY query
), gains AS (
    SELECT query, catalog_reads, speed_up FROM simple
    JOIN printed.four_tactics_files_wall_derived AS p USING (query) WHERE p.size <= 1
)
SELECT 'every simple command reads catalogs' AS fact, min(catalog_reads) > 0 AS so, true AS essential FROM gains HAVING count(*) > 0
UNION ALL
SELECT 'in print those gain more that read more of them', corr(speed_up, catalog_reads) > 0, false FROM gains HAVING count(*) > 0
