-- A catalog of which more pages are read than it has is read again.
WITH first_time AS (
    SELECT rung, file, sum(l.reads) AS reads, any_value(s.pages) AS pages
    FROM postgres95_ladder AS l JOIN postgres95_sizes AS s USING (file)
    WHERE transaction = 0 AND s.kind = 'catalog' AND l.reads > 0 GROUP BY ALL
), later AS (
    SELECT rung, coalesce(sum(reads) FILTER (kind = 'catalog'), 0) AS catalogs,
           coalesce(sum(reads) FILTER (kind = 'status'), 0) AS status
    FROM postgres95_ladder WHERE steady GROUP BY rung
)
SELECT 'with sixteen pages a first transaction reads catalogs again' AS fact,
       bool_or(reads > pages) AS so, true AS essential
FROM first_time WHERE rung = 'one backend' HAVING count(*) > 0
UNION ALL
SELECT 'with sixteen pages later transactions read catalogs again', catalogs > 0, false
FROM later WHERE rung = 'one backend'
UNION ALL
SELECT 'with forty-eight pages a first transaction reads no catalog again', bool_and(reads <= pages), true
FROM first_time WHERE rung = '48 pages' HAVING count(*) > 0
UNION ALL
SELECT 'with forty-eight pages later transactions read nothing again that all share', catalogs + status = 0, true
FROM later WHERE rung = '48 pages'
UNION ALL
SELECT 'with sixteen pages later transactions read their status again', status > 0, false
FROM later WHERE rung = 'one backend'
