-- what moves blocks is one routine of assembler, whose labels the counts have apart
WITH groups(part, routine) AS (
    VALUES ('READ', 'read'), ('BMOVE', 'bmove'), ('BMOVE', 'even'), ('BMOVE', 'odd1'), ('BMOVE', 'wordt'),
           ('BMOVE', 'wordm'), ('BMOVE', 'bytet'), ('BMOVE', 'bytem'), ('BMOVE', 'done')
), counted AS (
    SELECT routine, instructions, sum(instructions) OVER () AS total FROM ingres_routines
    WHERE length(query) = 1 AND tuples IN (0, 1, 210, 3360) AND organization <> 'hash'
          AND processes = 'together' AND process = 'decomp70'
          AND EXISTS (SELECT 1 FROM ingres_routines WHERE query = 'h')
)
SELECT part, sum(instructions) / max(total) AS value
FROM groups JOIN counted USING (routine) GROUP BY part ORDER BY part DESC
