-- Low: less than half; the opposite is more.
WITH own AS (
    SELECT sum(instructions) FILTER (subsystem IN ('parser', 'optimizer'))
           / sum(instructions) FILTER (subsystem IN ('executor', 'access methods', 'storage manager'))
           AS ratio
    FROM postgres95_profile WHERE variant = 'assertions' AND query_set = 'transactions'
    HAVING count(*) > 0
)
SELECT 'parsing and planning take less than half of processing data' AS fact,
       ratio < 0.5 AS so, true AS essential, ratio > 1 AS opposite
FROM own
