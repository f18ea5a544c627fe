-- A chain is as long as can be where it has all versions until they fill its page. "Not much worse"
-- is at most a quarter more than before HOT, of what executing a lookup takes.
WITH hot AS (FROM beside_an_old_transaction WHERE server = 'hot'),
compared AS (
    SELECT hot.updates, hot.executed <= 1.25 * before.executed AS executed,
           hot.whole <= 1.25 * before.whole AS whole
    FROM hot JOIN beside_an_old_transaction AS before USING (updates)
    WHERE before.server = 'before-hot' AND updates > 0
)
SELECT 'beside an old transaction a chain has all versions until it fills its page' AS fact,
       bool_and(chain = updates + 1) FILTER (updates <= 60)
           AND min(chain) FILTER (updates > 60) = max(chain) FILTER (updates <= 60) AS so,
       true AS essential
FROM hot
UNION ALL
SELECT 'after ' || updates || ' updates executing a lookup takes at most a quarter more instructions than before HOT',
       executed, true
FROM compared
UNION ALL
SELECT 'with parsing and planning it takes at most a quarter more, too', bool_and(whole), false
FROM compared
UNION ALL
SELECT 'the chain goes on where its page is full', max(chain) > max(updates), false FROM hot
