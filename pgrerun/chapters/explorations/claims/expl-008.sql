WITH compared AS (
    SELECT at_once, waited
    FROM waiting at_once, waiting waited
    WHERE at_once.event = 'update' AND waited.event = 'update, wait' AND waited.tuples >= 1000000
)
SELECT 'after the delay the reader writes fewer pages than at once' AS fact,
       waited.reader < at_once.reader AS so, true AS essential
FROM compared
UNION ALL
SELECT 'the checkpointer writes more pages until then', waited.checkpointer > at_once.checkpointer, true
FROM compared
UNION ALL
SELECT 'the background writer writes more pages until then',
       waited.background_writer > at_once.background_writer, false
FROM compared
UNION ALL
SELECT 'fewer pages are dirty then', waited.dirty < at_once.dirty, false FROM compared
