-- The longest chain of all looks: alone, a chain is pruned whenever its page is nearly full and then
-- grows anew, so that how long it is at the end is a matter of when one looks. Longer is by more
-- than a twentieth, the smallest effect of interest.
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
SELECT 'the longest chain beside an old snapshot is longer than the longest without',
       max(chain) FILTER (old_snapshot) > 1.05 * max(chain) FILTER (NOT old_snapshot), true
FROM steps WHERE variant = 'HOT'
UNION ALL
SELECT 'a lookup touches no more pages than without HOT', beside.pages <= without.pages, true
FROM beside, steps without
WHERE beside.last AND without.last AND without.variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'the chain goes on where its page is full', chain > updates, false FROM beside WHERE last
