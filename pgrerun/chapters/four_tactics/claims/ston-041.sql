-- A page after the one before is known ahead; an overflow page and the page after it are, too, by the
-- links in what was read. So more than half says that INGRES usually knows, and less doesn't say no.
WITH asked AS (
    SELECT page, lag(page) OVER (PARTITION BY query, tuples, process, relation ORDER BY request) AS previous
    FROM ingres_requests
    WHERE writes = 0 AND fillfactor = 100 AND (organization = 'hash') = (query = 'h') AND relation <> 'INGQ1000'
          AND EXISTS (SELECT 1 FROM ingres_requests WHERE query = 'h')
)
SELECT 'more than half of what INGRES reads is the page after the one before, which it knows ahead' AS fact,
       CASE WHEN count_if(page = previous + 1) > 0.5 * count(*) THEN true END AS so
FROM asked HAVING count(*) > 0
