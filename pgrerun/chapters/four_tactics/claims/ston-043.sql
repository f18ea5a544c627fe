WITH e AS (
    SELECT max(seconds) FILTER (WHERE files = 'UNIX' AND processor = 'INGRES') AS on_unix,
           max(seconds) FILTER (WHERE files = 'tracks' AND processor = 'INGRES') AS by_tracks,
           max(seconds) FILTER (WHERE processor = 'FS-INGRES') AS on_fs
    FROM disk_of_1981 WHERE query = 'e' AND calibration = 'query e'
)
SELECT (on_unix - by_tracks) / (on_unix - on_fs) AS value FROM e
