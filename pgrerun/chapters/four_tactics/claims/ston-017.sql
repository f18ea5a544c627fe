SELECT max(seconds) FILTER (WHERE files = 'UNIX' AND processor = 'INGRES')
       / max(seconds) FILTER (WHERE processor = 'DC-INGRES') AS value
FROM disk_of_1981 WHERE query = 'e' AND calibration = 'the joins'
