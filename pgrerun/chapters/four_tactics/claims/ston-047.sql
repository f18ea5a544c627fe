-- within a quarter, both ways; a hashed relation is filled as INGRES does by default and as the ISAM one is. What the
-- two fills tell differently decides nothing once others have told yes and no. Query h has another plan than in print
WITH taken AS (
    SELECT query, organization, fillfactor, 'reads about as many pages' AS what, sum(reads) AS many
    FROM ingres_benchmark
    WHERE organization IN ('isam', 'hash') AND processes = 'together' AND process <> 'monitor' GROUP BY ALL
    UNION ALL
    SELECT query, organization, fillfactor, 'takes about as many instructions', sum(instructions)
    FROM ingres_benchmark
    WHERE organization IN ('isam', 'hash') AND processes = 'together' AND process <> 'monitor' GROUP BY ALL
), alike AS (
    SELECT query, what, bool_and(hash.many / isam.many BETWEEN 1 / 1.25 AND 1.25) AS by_all,
           bool_or(hash.many / isam.many BETWEEN 1 / 1.25 AND 1.25) AS by_one
    FROM taken AS hash JOIN taken AS isam USING (query, what)
    WHERE hash.organization = 'hash' AND isam.organization = 'isam' GROUP BY query, what
), told AS (
    SELECT count_if(by_all) > 0 AND count_if(NOT by_one) > 0 AS mixed FROM alike WHERE query <> 'h'
)
SELECT 'query ' || query || ' ' || what || ', however its pages are filled' AS fact,
       CASE WHEN by_all = by_one THEN by_all END AS so, query <> 'h' AND (by_all = by_one OR NOT mixed) AS essential
FROM alike, told ORDER BY fact
