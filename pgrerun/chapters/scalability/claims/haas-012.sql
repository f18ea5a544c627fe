-- The dish is what clients in the middle lack of a straight line through one alone; it ends where those
-- of the talk's last number do better again. Without clients in the middle nothing bears on it.
WITH swept AS (
    SELECT clients, median(tps) / clients AS each FROM releases_over_clients
    WHERE build = '9.2' AND load = 'lookups' GROUP BY clients
), dish AS (
    SELECT max(each) FILTER (clients = 1) AS alone, min(each) FILTER (clients BETWEEN 16 AND 32) AS least,
           max(each) FILTER (clients = 64) AS at_last
    FROM swept
)
SELECT 'with 16 to 32 clients there is a number of which each does less than one alone, by a twentieth' AS fact,
       least < 0.95 * alone AS so
FROM dish WHERE least + at_last > 0
UNION ALL SELECT 'of 64 each does more again, by a twentieth', at_last > 1.05 * least FROM dish WHERE least + at_last > 0
