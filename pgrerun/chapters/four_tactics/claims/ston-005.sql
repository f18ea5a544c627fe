WITH path AS (SELECT planned, relation, path FROM plans_by_growth),
     chosen AS (SELECT planned, count(DISTINCT path) AS paths FROM plans_by_constant GROUP BY planned)
SELECT 'INGRES substitutes that relation of a join of which a restriction has left few rows, whichever it is' AS fact,
       (SELECT bool_and((reads > pages) = (relation <> few)) FROM ingres_substitution) AS so,
       true AS essential
UNION ALL
SELECT 'planned at run time, the path follows the table''s size while it grows',
       (SELECT count(DISTINCT path) = 2 FROM path
        WHERE planned = 'at run time' AND relation IN ('small', 'grown')), true
UNION ALL
SELECT 'planned ahead, it keeps its path while the table grows',
       (SELECT count(DISTINCT path) = 1 FROM path WHERE planned = 'ahead' AND relation IN ('small', 'grown')), true
UNION ALL
SELECT 'planned at run time, the path follows growth and new statistics',
       (SELECT count(DISTINCT path) = 2 FROM path
        WHERE planned = 'at run time' AND relation IN ('small', 'grown and analyzed')), false
UNION ALL
SELECT 'a plan made ahead gets another path with new statistics, as PostgreSQL then makes it again',
       (SELECT count(DISTINCT path) = 2 FROM path
        WHERE planned = 'ahead' AND relation IN ('grown', 'grown and analyzed')), false
UNION ALL
SELECT 'planned at run time, the path depends on the constant',
       (SELECT paths > 1 FROM chosen WHERE planned = 'at run time'), false
UNION ALL
SELECT 'PostgreSQL''s join follows the size of a partial result that nobody foresaw',
       (SELECT count(DISTINCT path) = 1 FROM plans_by_partial_result), false
UNION ALL
SELECT 'planned ahead, the path depends on the constant',
       (SELECT paths > 1 FROM chosen WHERE planned = 'ahead'), false
