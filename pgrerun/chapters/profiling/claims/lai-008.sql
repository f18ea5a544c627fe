-- The two builds fetch the same attributes of the same tuples, by the routine of January 1991. Where the
-- length isn't kept in a variable it is loaded whenever it is tested, as a compiler of 1990 did.
WITH costs AS (
    SELECT variant, sum(instructions) FILTER (starts_with(routine, 'fastgetattr'))
                    / sum(calls) FILTER (routine = 'fastgetattr') AS per_call
    FROM postgres95_changes GROUP BY variant
)
SELECT before.per_call / after.per_call AS value
FROM costs AS before, costs AS after
WHERE before.variant = 'length written out' AND after.variant = 'length in a variable'
