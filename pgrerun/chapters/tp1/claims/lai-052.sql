WITH of AS (
    SELECT rung, sum(reads) FILTER (steady) AS steadily,
           sum(reads) FILTER (transaction = 0 AND kind = 'catalog') AS catalogs_at_first,
           coalesce(sum(reads) FILTER (steady AND kind IN ('catalog', 'status')), 0) AS shared
    FROM postgres95_ladder GROUP BY rung
), sixteen AS (FROM of WHERE rung = 'one backend'), more AS (FROM of WHERE rung = '48 pages')
SELECT 'a pool of sixteen pages reads more than one of forty-eight' AS fact,
       sixteen.steadily > more.steadily AS so, false AS essential FROM sixteen, more -- any larger pool would
UNION ALL
SELECT 'within a first transaction sixteen pages lose catalogs that forty-eight keep',
       sixteen.catalogs_at_first > more.catalogs_at_first, true FROM sixteen, more
UNION ALL
SELECT 'with sixteen pages something is read again that all transactions share', sixteen.shared > 0, true FROM sixteen
UNION ALL
SELECT 'with forty-eight pages nothing is read again that all transactions share', more.shared = 0, true FROM more
