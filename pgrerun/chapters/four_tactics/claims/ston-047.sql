-- A result is seconds. Of a query's printed ones those of the processor (Table 2) go by its instructions, and the rest of
-- those by the clock (Table 1) by the pages that it reads. Similar is within a quarter, both ways. A hashed relation is
-- filled as INGRES does by default and as the ISAM one is. What the two fills tell differently decides nothing once others
-- have told yes and no. Query h has another plan than in print
WITH taken AS (
    SELECT query, organization, fillfactor, sum(reads) AS reads, sum(instructions) AS instructions
    FROM ingres_benchmark
    WHERE organization IN ('isam', 'hash') AND processes = 'together' AND process <> 'monitor' GROUP BY ALL
), timed AS (
    SELECT query, cpu.ingres AS processor, wall.ingres - cpu.ingres AS waited,
           processor * hash.instructions / isam.instructions AS hash_processor,
           waited * hash.reads / isam.reads AS hash_waited
    FROM taken AS hash JOIN taken AS isam USING (query)
    JOIN printed.four_tactics_compiled_cpu AS cpu USING (query)
    JOIN printed.four_tactics_compiled_wall AS wall USING (query)
    WHERE hash.organization = 'hash' AND isam.organization = 'isam'
), compared AS (
    SELECT query, 'takes about as much of the processor' AS what, hash_processor / processor AS ratio FROM timed
    UNION ALL
    SELECT query, 'takes about as long by the clock', (hash_processor + hash_waited) / (processor + waited) FROM timed
), alike AS (
    SELECT query, what, bool_and(ratio BETWEEN 1 / 1.25 AND 1.25) AS by_all,
           bool_or(ratio BETWEEN 1 / 1.25 AND 1.25) AS by_one
    FROM compared GROUP BY query, what
), told AS (
    SELECT count_if(by_all) > 0 AND count_if(NOT by_one) > 0 AS mixed FROM alike WHERE query <> 'h'
)
SELECT 'query ' || query || ' ' || what || ', however its pages are filled' AS fact,
       CASE WHEN by_all = by_one THEN by_all END AS so, query <> 'h' AND (by_all = by_one OR NOT mixed) AS essential
FROM alike, told ORDER BY fact
