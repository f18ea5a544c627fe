-- The talk's processors over the clients at which 9.1 is fastest, as measured on so many here.
SELECT '' AS part, max(processors) / arg_max(clients, tps) AS value
FROM (SELECT processors, clients, median(tps) AS tps FROM releases_over_clients
      WHERE build = '9.1' AND load = 'lookups' GROUP BY ALL)
