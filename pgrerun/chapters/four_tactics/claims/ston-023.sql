-- What the rows can't decide between: who saves registers for a call (the VAX's call and return do
-- it, so that it belongs to the routine that is called, or to none), and whether a share of a PDP-11's
-- instructions is that of a VAX's time, or calls times the printed milliseconds of a call are.
-- Those leave the kernel out, which the printed seconds don't: so they are held against FS-INGRES's, which
-- ask it for less and are nearer to what the calls are a part of.
-- Query h is taken from hash: on isam its calls would take several times its printed time.
WITH command AS (
    SELECT query || '_' || tuples AS key, sum(instructions) AS total,
           coalesce(sum(instructions) FILTER (routine IN ('getsymbol', 'interpret')), 0) AS own,
           coalesce(sum(calls) FILTER (routine IN ('getsymbol', 'interpret')), 0) AS calls,
           coalesce(sum(calls * call_ms), 0) / 1000 AS called,
           coalesce(sum(instructions) FILTER (routine IN ('csv', 'cret'))
                    / sum(calls) FILTER (routine = 'csv'), 0) AS saving
    FROM ingres_routines
         LEFT JOIN (SELECT lower(key) AS routine, call_ms FROM printed.four_tactics_microcode) USING (routine)
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND fillfactor = 100
          AND (organization = 'hash') = (query = 'h')
          AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY query, tuples
), weighed AS (
    SELECT sum(seconds * own / total) / sum(seconds) AS counted,
           sum(seconds * (own + calls * saving) / total) / sum(seconds) AS saved,
           sum(called) / sum(fs) AS timed,
           sum(own) / sum(total) AS plain
    FROM (SELECT *, ingres AS seconds FROM command JOIN printed.four_tactics_files_cpu USING (key))
    HAVING count(*) > 0
), ends AS (
    SELECT *, least(counted, saved, timed) AS low, greatest(counted, saved, timed) AS high,
           list_median([counted, saved, timed]) AS middle
    FROM weighed
)
-- what is printed is another share only if the readings are all on one side of it
SELECT 'however weighed' AS part, middle AS value, low, high, true AS essential FROM ends
UNION ALL SELECT 'as counted', counted, counted, counted, false FROM ends
UNION ALL SELECT 'with saving registers', saved, saved, saved, false FROM ends
UNION ALL SELECT 'by the printed time of a call', timed, timed, timed, false FROM ends
UNION ALL SELECT 'of all instructions', plain, plain, plain, false FROM ends
