-- The talk's processors over the clients at which 9.1 is fastest, as measured on so many here. Where no
-- number of clients between half of the processors and all was tried, none of them could be the fastest.
SELECT '' AS part, max(processors) / arg_max(clients, tps) AS value
FROM (SELECT processors, clients, median(tps) AS tps FROM releases_over_clients
      WHERE build = '9.1' AND load = 'lookups' GROUP BY ALL)
HAVING bool_or(clients > processors / 2 AND clients < processors)
