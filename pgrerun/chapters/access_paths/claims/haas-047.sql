-- The cost by the all-visible share, as a part of its way from none of the pages to all of them, and
-- with none of them as many times that of a plain index scan, today and by 9.2 itself.
WITH each AS (
    SELECT 'today' AS server, percent, index_only, plain FROM costs
    UNION ALL SELECT '9.2', percent, index_only, plain FROM costs_on_releases
), ends AS (
    SELECT server, arg_min(index_only, percent) AS none, arg_max(index_only, percent) AS all_of_them,
           arg_min(index_only / plain, percent) AS times
    FROM each GROUP BY server
), ways AS (
    SELECT server, percent, (index_only - all_of_them) / (none - all_of_them) AS way
    FROM each JOIN ends USING (server)
)
SELECT 'the cost goes by the all-visible share otherwise than on 9.2' AS fact,
       bool_or(abs(today.way - before.way) >= 0.01) AS so
FROM (FROM ways WHERE server = 'today') AS today
     JOIN (FROM ways WHERE server = '9.2') AS before USING (percent)
UNION ALL
SELECT 'what a look into the map and a vain visit cost is estimated otherwise than on 9.2',
       abs(today.times / before.times - 1) >= 0.01
FROM (FROM ends WHERE server = 'today') AS today, (FROM ends WHERE server = '9.2') AS before
