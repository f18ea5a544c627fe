-- Pages of INGRES, whose times are printed: read of the relation and its index, and of temporaries.
WITH touched AS (
    SELECT sum(pages) FILTER (query = 'q20') AS scalar, sum(pages) FILTER (query = 'q23') AS by_index,
           sum(pages) FILTER (query = 'q21') AS grouped,
           sum(pages) FILTER (query = 'q24') AS grouped_by_index
    FROM (SELECT query, relation_reads + temporary_reads + temporary_writes AS pages
          FROM ingres_queries WHERE query IN ('q20', 'q21', 'q23', 'q24'))
    HAVING count(*) > 0
)
SELECT 'an index saves MIN no page' AS fact, by_index >= scalar AS so, by_index < scalar AS opposite
FROM touched
UNION ALL
SELECT 'MIN by group takes more pages with an index', grouped_by_index > grouped,
       grouped_by_index < grouped
FROM touched
