WITH roomy AS (
    SELECT f.* FROM fillfactors f, printed.hot_setup s
    WHERE s.key = 'fillfactor' AND f.fillfactor = s.value
), whole AS (
    FROM fillfactors WHERE fillfactor = 100
)
SELECT 'pages loaded at the thread''s fillfactor have room for further versions, full ones none'
           AS fact,
       roomy.room > 0 AND whole.room = 0 AS so, true AS essential
FROM roomy, whole
UNION ALL
SELECT 'of first updates by one statement more are HOT than on full pages',
       roomy.at_once > whole.at_once, true
FROM roomy, whole
UNION ALL
SELECT 'one by one every first update is HOT', one_by_one = 1, false FROM roomy
UNION ALL
SELECT 'on full pages fewer than half are', one_by_one < 0.5, false FROM whole
