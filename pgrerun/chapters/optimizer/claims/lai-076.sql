-- Both faults, compiled into Postgres95 one by one and together. One has a part in the choice where
-- it turns it, alone or beside the other.
WITH taken AS (
    SELECT max(method) FILTER (fault = 'mended') AS neither,
           max(method) FILTER (fault = 'constant selectivity') AS by_selectivity,
           max(method) FILTER (fault = 'no size set') AS by_size,
           max(method) FILTER (fault = 'no size of a join set') AS by_join_size,
           max(method) FILTER (fault = 'both') AS by_both
    FROM joins_of_postgres95 WHERE query = 3 AND chosen
), elsewhere AS (
    SELECT count(DISTINCT method) AS methods
    FROM joins_of_postgres95
    WHERE query <> 3 AND chosen AND fault IN ('mended', 'no size set') GROUP BY query
)
SELECT 'Postgres95 takes the nested loop for the third query with both faults, and another join'
       || ' with neither' AS fact,
       by_both = 'nested loop' AND neither <> 'nested loop' AS so, true AS essential
FROM taken
UNION ALL
SELECT 'the constant selectivity has a part in it',
       by_selectivity <> neither OR by_both <> by_size, true
FROM taken
UNION ALL
SELECT 'the expected size has a part in it',
       by_size <> neither OR by_both <> by_selectivity, true
FROM taken
UNION ALL
SELECT 'the size of the join has it by itself', by_join_size <> neither, false
FROM taken
UNION ALL
SELECT 'without the sizes the other queries are joined as with them', max(methods) = 1, false
FROM elsewhere
