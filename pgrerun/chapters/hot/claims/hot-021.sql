-- "In most cases": more than half of the set-ups, as surely as a sign test says it of so many;
-- unresolved where fewer than two pairs of runs stand for a set-up. The message says a range: gains
-- of that and more are told and don't decide.
WITH setups AS (
    SELECT count(DISTINCT block) AS pairs,
           exp(avg(ln(tps)) FILTER (server = 'hot') - avg(ln(tps)) FILTER (server <> 'hot'))
               AS times
    FROM merlins_setups GROUP BY scale, clients, autovacuum
), said AS (
    SELECT 1 + max(value) FILTER (key = 'improvement_low') / 100 AS least,
           1 + max(value) FILTER (key = 'improvement_high') / 100 AS most
    FROM printed.hot_said
), counted AS (
    SELECT 'in most set-ups HOT gains at least what the message says' AS fact,
           count(*) FILTER (times >= least) AS so_many, count(*) AS setups, min(pairs) AS pairs,
           false AS essential
    FROM setups, said
    UNION ALL
    SELECT 'in most set-ups the gain lies in the range that the message says',
           count(*) FILTER (times BETWEEN least AND most), count(*), min(pairs), true
    FROM setups, said
), chances AS (
    -- that a fair coin shows as many heads or more, and as many or fewer
    SELECT *,
           list_sum([factorial(setups::INT) / factorial(i::INT) / factorial((setups - i)::INT)
                     FOR i IN range(so_many, setups + 1)]) / 2 ** setups AS more,
           list_sum([factorial(setups::INT) / factorial(i::INT) / factorial((setups - i)::INT)
                     FOR i IN range(0, so_many + 1)]) / 2 ** setups AS fewer
    FROM counted
)
SELECT fact,
       CASE WHEN pairs < 2 THEN NULL WHEN more <= 0.025 THEN true WHEN fewer <= 0.025 THEN false END
           AS so,
       essential
FROM chances
