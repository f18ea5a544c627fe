WITH of AS (
    SELECT rung, sum(reads) FILTER (steady) AS steadily,
           sum(reads) FILTER (transaction = 0 AND kind = 'catalog') AS catalogs_at_first,
           coalesce(sum(reads) FILTER (steady AND kind IN ('catalog', 'status')), 0) AS shared
    FROM postgres95_ladder GROUP BY rung
), sixteen AS (FROM of WHERE rung = 'one backend'), more AS (FROM of WHERE rung = '48 pages')
SELECT 'a pool of sixteen pages reads more than one of forty-eight' AS fact,
       sixteen.steadily > more.steadily AS so FROM sixteen, more
UNION ALL
SELECT 'within a first transaction sixteen pages lose catalogs that forty-eight keep',
       sixteen.catalogs_at_first > more.catalogs_at_first FROM sixteen, more
UNION ALL
SELECT 'with forty-eight pages nothing is read again that all transactions share', more.shared = 0 FROM more
