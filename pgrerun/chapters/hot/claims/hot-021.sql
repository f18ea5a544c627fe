-- "In most cases": in more than half of the set-ups, which are chosen and not drawn, by whole per
-- cents as in the message; unresolved where fewer than two pairs of runs stand for one. The message
-- says a range: gains of that and more are told and don't decide.
WITH setups AS (
    SELECT count(DISTINCT block) AS pairs,
           round(100 * exp(avg(ln(tps)) FILTER (server = 'hot')
                           - avg(ln(tps)) FILTER (server <> 'hot'))) - 100 AS gain
    FROM merlins_setups GROUP BY scale, clients, autovacuum
), said AS (
    SELECT max(value) FILTER (key = 'improvement_low') AS least,
           max(value) FILTER (key = 'improvement_high') AS most
    FROM printed.hot_said
), counted AS (
    SELECT 'in most set-ups HOT gains at least what the message says' AS fact,
           avg((gain >= least)::INT) AS share, min(pairs) AS pairs, false AS essential
    FROM setups, said
    UNION ALL
    SELECT 'in most set-ups the gain lies in the range that the message says',
           avg((gain BETWEEN least AND most)::INT), min(pairs), true
    FROM setups, said
)
SELECT fact, CASE WHEN pairs >= 2 THEN share > 0.5 END AS so, essential
FROM counted
