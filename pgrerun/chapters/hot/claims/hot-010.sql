WITH steps AS (
    SELECT *, chain >= lag(chain, 1, 0) OVER (PARTITION BY variant, old_snapshot ORDER BY updates)
                  AS kept,
           updates = max(updates) OVER () AS last
    FROM long_transaction
), beside AS (FROM steps WHERE variant = 'HOT' AND old_snapshot)
SELECT 'beside an old snapshot a chain is never shortened' AS fact, bool_and(kept) AS so,
       true AS essential
FROM beside
UNION ALL
SELECT 'beside an old snapshot a chain ends longer than without', beside.chain > alone.chain, true
FROM beside, steps alone
WHERE beside.last AND alone.last AND alone.variant = 'HOT' AND NOT alone.old_snapshot
UNION ALL
SELECT 'a lookup touches no more pages than without HOT', beside.pages <= without.pages, true
FROM beside, steps without
WHERE beside.last AND without.last AND without.variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'the chain goes on where its page is full', chain > updates, false FROM beside WHERE last
