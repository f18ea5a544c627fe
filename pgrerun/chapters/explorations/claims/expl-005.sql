WITH stays AS (
    -- pools that are read until half of a relation's pages are gone, or all that are read
    SELECT strategy, watched,
           coalesce(min(pages_read) FILTER (kept < 0.5), max(pages_read)) AS pools
    FROM survivors WHERE flood = 'many small relations' GROUP BY ALL
), often AS (
    SELECT max(pools) FILTER (strategy = 'this server') AS here,
           max(pools) FILTER (strategy = 'a clock') AS clock,
           max(pools) FILTER (strategy LIKE 'a list%') AS list
    FROM stays WHERE watched = 'read six times'
), seen AS (FROM survivors WHERE strategy = 'this server' AND flood = 'many small relations')
SELECT 'a page''s usage count grows with its uses' AS fact,
       max(usage) FILTER (watched = 'read six times') > max(usage) FILTER (watched = 'read once')
           AS so,
       true AS essential
FROM seen WHERE pages_read = 0
UNION ALL
SELECT 'the sweep lowers a page''s usage count',
       min(usage) FILTER (kept > 0) < max(usage) FILTER (pages_read = 0) - 1, true
FROM seen WHERE watched = 'read six times'
UNION ALL
SELECT 'pages used often outlive pages used once', often.here > stays.pools, true
FROM often, stays WHERE stays.strategy = 'this server' AND stays.watched = 'read once'
UNION ALL
SELECT 'by about as much as under a simulated clock', abs(here - clock) < abs(here - list), true
FROM often
UNION ALL
SELECT 'a large scan displaces them as well', avg(kept) < 0.5, false
FROM survivors
WHERE flood = 'one large scan'
  AND pages_read = (SELECT max(pages_read) FROM survivors)
