WITH calls AS (
    SELECT sum(calls) FILTER (routine = 'typecheck' AND constants LIKE 'integers%') / max(tuples) AS looks,
           sum(calls) FILTER (routine = 'itof' AND constants LIKE 'integers%') / max(tuples)
           - sum(calls) FILTER (routine = 'itof' AND constants LIKE 'floats%') / max(tuples) AS conversions
    FROM ingres_figure_1 HAVING count(*) > 0
)
SELECT 'each of the two operators looks at its operands'' types for every row' AS fact, looks >= 2 AS so, true AS essential FROM calls
UNION ALL
SELECT 'the constant that is compared is converted for every row, as well as the one that is added', conversions >= 2, true FROM calls
