WITH written AS (
    SELECT bgwriter,
           min(reader) FILTER (event = 'update') AS least_at_once,
           max(reader) FILTER (event = 'update') AS most_at_once,
           min(reader) FILTER (event = 'update, wait') AS least_waited,
           max(reader) FILTER (event = 'update, wait') AS most_waited,
           median(checkpointer) FILTER (event = 'update, wait')
               > median(checkpointer) FILTER (event = 'update') AS by_checkpointer,
           median(dirty) FILTER (event = 'update, wait')
               < median(dirty) FILTER (event = 'update') AS fewer_dirty
    FROM waiting WHERE tuples >= 1000000 GROUP BY bgwriter
), compared AS (
    SELECT *, CASE WHEN most_waited < 0.95 * least_at_once THEN true
                   WHEN least_waited >= 0.95 * most_at_once THEN false END AS spared
    FROM written
)
SELECT 'the delay spares the reader writing pages' AS fact, spared AS so, true AS essential
FROM compared WHERE bgwriter = 'as by default'
UNION ALL
SELECT 'it does where only the checkpointer can', spared, true FROM compared WHERE bgwriter = 'off'
UNION ALL
SELECT 'the checkpointer writes more pages until then', by_checkpointer, false
FROM compared WHERE bgwriter = 'off'
UNION ALL
SELECT 'fewer pages are dirty then', fewer_dirty, false FROM compared WHERE bgwriter = 'off'
