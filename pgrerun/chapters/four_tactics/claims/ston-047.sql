-- within a quarter, both ways
WITH ratios AS (
    SELECT query,
           sum(reads) FILTER (WHERE organization = 'hash') / sum(reads) FILTER (WHERE organization = 'isam') AS reads,
           sum(instructions) FILTER (WHERE organization = 'hash')
           / sum(instructions) FILTER (WHERE organization = 'isam') AS instructions
    FROM ingres_benchmark
    WHERE organization IN ('isam', 'hash') AND processes = 'together' AND process <> 'monitor'
    GROUP BY query
)
SELECT 'query ' || query || ' reads about as many pages' AS fact, reads BETWEEN 1 / 1.25 AND 1.25 AS so FROM ratios
UNION ALL
SELECT 'query ' || query || ' takes about as many instructions', instructions BETWEEN 1 / 1.25 AND 1.25 FROM ratios
ORDER BY fact
