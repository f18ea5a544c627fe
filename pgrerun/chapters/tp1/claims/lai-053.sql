-- After the report's batch of 300 transactions; each relation is probed as often as any other.
SELECT 'a random page mostly has no room for another version' AS fact,
       fails > 0.5 AS so, true AS essential, fails < 0.5 AS opposite
FROM (SELECT 1 - avg(with_room / pages) AS fails FROM pages_with_room WHERE transactions = 300)
