SELECT CASE event WHEN 'loaded' THEN 'the daemon gathers the extremes of a new relation'
                  ELSE 'the daemon gathers them again after a change' END AS fact,
       known = greatest AS so
FROM daemon
