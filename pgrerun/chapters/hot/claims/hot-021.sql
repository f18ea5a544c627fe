-- "In most cases": in more than half of the set-ups, which are chosen and not drawn. Of each the
-- least and the largest gain of five pairs or more, by whole per cents as in the message:
-- between them its median lies, with nineteen in twenty, about. The message says a range: gains of
-- its lower end and more are told and don't decide.
WITH pairs AS (
    SELECT scale, clients, autovacuum,
           round(100 * max(tps) FILTER (server = 'hot')
                 / max(tps) FILTER (server <> 'hot')) - 100 AS gain
    FROM merlins_setups GROUP BY scale, clients, autovacuum, block
), setups AS (
    SELECT count(gain) AS pairs, min(gain) AS low, max(gain) AS high
    FROM pairs GROUP BY scale, clients, autovacuum
), said AS (
    SELECT max(value) FILTER (key = 'improvement_low') AS least,
           max(value) FILTER (key = 'improvement_high') AS most
    FROM printed.hot_said
), counted AS (
    SELECT 'in most set-ups HOT gains at least what the message says' AS fact,
           avg((low >= least)::INT) AS within, avg((high < least)::INT) AS outside,
           min(pairs) AS pairs, false AS essential
    FROM setups, said
    UNION ALL
    SELECT 'in most set-ups the gain lies in the range that the message says',
           avg((low >= least AND high <= most)::INT), avg((high < least OR low > most)::INT),
           min(pairs), true
    FROM setups, said
)
SELECT fact,
       CASE WHEN pairs >= 5 THEN
           CASE WHEN within > 0.5 THEN true WHEN outside >= 0.5 THEN false END
       END AS so,
       essential
FROM counted
