-- At the least the library's read, which makes the call; at the most get_page with all that it calls, which
-- looks a page up in INGRES's own buffers, and tells the kernel where it is and reads it only if it isn't there.
WITH command AS (
    SELECT query || '_' || tuples AS key, sum(instructions) AS total,
           coalesce(sum(instructions) FILTER (routine = 'read'), 0) AS alone,
           coalesce(max(inclusive) FILTER (routine = 'get_page'), 0) AS looking
    FROM ingres_routines
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND fillfactor = 100
          AND (organization = 'hash') = (query = 'h')
          AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
    GROUP BY query, tuples
), ends AS (
    SELECT sum(ingres * alone / total) / sum(ingres) AS low,
           sum(ingres * looking / total) / sum(ingres) AS high
    FROM command JOIN printed.four_tactics_compiled_cpu USING (key)
    HAVING count(*) > 0
)
-- what is printed is another share only if both ends are on one side of it
SELECT 'between the two' AS part, (low + high) / 2 AS value, low, high, true AS essential FROM ends
UNION ALL SELECT 'the library''s read alone', low, low, low, false FROM ends
UNION ALL SELECT 'with all that finding the page takes', high, high, high, false FROM ends
