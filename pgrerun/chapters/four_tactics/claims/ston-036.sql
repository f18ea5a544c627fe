SELECT 'on a disk set by ' || calibration AS part, calibration = 'the joins' AS essential,
       max(seconds) FILTER (WHERE files = 'UNIX' AND processor = 'INGRES')
       / max(seconds) FILTER (WHERE processor = 'FS-INGRES') AS value
FROM disk_of_1981 WHERE query = 'e' AND calibration <> 'query e'
GROUP BY calibration ORDER BY calibration
