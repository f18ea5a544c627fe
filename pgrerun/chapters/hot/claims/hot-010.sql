-- The mean over all looks since the page was first full: alone, a chain is pruned whenever its page
-- is nearly full and then grows anew, so that a reader meets any length up to that. Very long is
-- twice as long and more, beside an old snapshot.
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
SELECT 'once its page is full, a chain beside an old snapshot is at least twice as long on average as one without',
       avg(chain) FILTER (old_snapshot) >= 2 * avg(chain) FILTER (NOT old_snapshot), true
FROM steps
WHERE variant = 'HOT' AND updates >= (SELECT arg_max(updates, (chain, -updates)) FROM beside)
UNION ALL
SELECT 'a lookup touches no more pages than without HOT', beside.pages <= without.pages, true
FROM beside, steps without
WHERE beside.last AND without.last AND without.variant = 'neither HOT nor pruning'
UNION ALL
SELECT 'the chain goes on where its page is full', chain > updates, false FROM beside WHERE last
