-- Both faults, compiled into Postgres95 one by one and together. The sentence explains a choice, so a
-- fault has a part where it changes what is chosen, alone or beside the other. How near a fault brings
-- the loop is told: what keeps the loop out is what it costs more than the cheapest other join.
WITH taken AS (
    SELECT max(method) FILTER (fault = 'mended') AS neither,
           max(method) FILTER (fault = 'constant selectivity') AS by_selectivity,
           max(method) FILTER (fault = 'no size set') AS by_size,
           max(method) FILTER (fault = 'no size of a join set') AS by_join_size,
           max(method) FILTER (fault = 'both') AS by_both
    FROM joins_of_postgres95 WHERE query = 3 AND chosen
), costs AS (
    SELECT fault, min(cost) FILTER (method = 'nested loop') - min(cost) FILTER (method <> 'nested loop') AS excess
    FROM joins_of_postgres95 WHERE query = 3 GROUP BY fault
), kept_out AS (
    SELECT max(excess) FILTER (fault = 'mended') AS mended,
           max(excess) FILTER (fault = 'constant selectivity') AS selectivity,
           max(excess) FILTER (fault = 'no size set') AS size,
           max(excess) FILTER (fault = 'both') AS both_faults
    FROM costs
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
SELECT 'the constant selectivity changes the choice, alone or beside the other fault',
       by_selectivity <> neither OR by_both <> by_size, true
FROM taken
UNION ALL
SELECT 'the expected size changes it, alone or beside the other', by_size <> neither OR by_both <> by_selectivity, true
FROM taken
UNION ALL
SELECT 'alone, the constant selectivity takes away most of what keeps the loop out',
       mended > 0 AND selectivity < mended / 2, false
FROM kept_out
UNION ALL
SELECT 'beside the other fault, too, the constant selectivity brings the loop nearer', both_faults < size, false
FROM kept_out
UNION ALL
SELECT 'alone, the expected size takes away most of it', mended > 0 AND size < mended / 2, false
FROM kept_out
UNION ALL
SELECT 'beside the other fault, too, the expected size brings it nearer', both_faults < selectivity, false
FROM kept_out
UNION ALL
SELECT 'the size of the join changes the choice by itself', by_join_size <> neither, false
FROM taken
UNION ALL
SELECT 'without the sizes the other queries are joined as with them', max(methods) = 1, false
FROM elsewhere
