-- The scheduler's is what its leaving nothing to schedule undoes. Without a saddle there is nothing to tell.
WITH swept AS (
    SELECT placed, clients, median(tps) / clients AS each FROM placed_clients GROUP BY placed, clients
), saddles AS (
    SELECT min(each) FILTER (clients BETWEEN 16 AND 32 AND placed = 'by the scheduler')
               / max(each) FILTER (clients = 1 AND placed = 'by the scheduler') AS left_alone,
           min(each) FILTER (clients BETWEEN 16 AND 32 AND placed <> 'by the scheduler')
               / max(each) FILTER (clients = 1 AND placed <> 'by the scheduler') AS kept
    FROM swept
)
SELECT 'with 16 to 32 clients each does less than one alone, by a twentieth, where the scheduler places them' AS fact,
       left_alone < 0.95 AS so, false AS essential
FROM saddles WHERE left_alone > 0
UNION ALL SELECT 'that is gone where each has a processor of its own', CASE WHEN left_alone < 0.95 THEN kept >= 0.95 END, true
FROM saddles WHERE left_alone > 0
