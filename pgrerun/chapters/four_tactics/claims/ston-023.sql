-- each command counts by its printed time; what saves registers for a call is counted apart on a PDP-11, and the
-- VAX's call and return do it themselves, so that it belongs to the routine that is called, or to none
WITH command AS (
    SELECT query || '_' || tuples AS key, sum(instructions) AS total,
           coalesce(sum(instructions) FILTER (routine IN ('getsymbol', 'interpret')), 0) AS own,
           coalesce(sum(calls) FILTER (routine IN ('getsymbol', 'interpret')), 0) AS calls,
           coalesce(sum(instructions) FILTER (routine IN ('csv', 'cret'))
                    / sum(calls) FILTER (routine = 'csv'), 0) AS saving
    FROM ingres_routines
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND organization <> 'hash'
          AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY query, tuples
), weighed AS (
    SELECT *, ingres AS seconds FROM command JOIN printed.four_tactics_compiled_cpu USING (key)
)
SELECT 'as counted' AS part, sum(seconds * own / total) / sum(seconds) AS value, true AS essential
FROM weighed HAVING count(*) > 0
UNION ALL
SELECT 'with saving registers', sum(seconds * (own + calls * saving) / total) / sum(seconds), true
FROM weighed HAVING count(*) > 0
UNION ALL
SELECT 'of all instructions', sum(own) / sum(total), false FROM weighed HAVING count(*) > 0
UNION ALL
SELECT 'of those without query h', sum(own) / sum(total), false FROM weighed WHERE query <> 'h' HAVING count(*) > 0
