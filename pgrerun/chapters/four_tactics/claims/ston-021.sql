SELECT query AS part,
       max(seconds) FILTER (WHERE files = 'UNIX' AND processor = 'INGRES')
       / max(seconds) FILTER (WHERE processor = 'DC-INGRES') AS value
FROM disk_of_1981 WHERE query IN ('f', 'g', 'h', 'i') AND calibration = 'query e'
GROUP BY query ORDER BY query
