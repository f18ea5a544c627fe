SELECT CASE WHEN tuples <= 1 THEN 'commands on one row' ELSE 'query ' || query END AS part,
       sum(travel) FILTER (WHERE catalogs = 'at the edge')
       / sum(travel) FILTER (WHERE catalogs = 'in the middle') AS value
FROM catalogs_placed WHERE tuples IN (1, 3360)
GROUP BY part ORDER BY part
