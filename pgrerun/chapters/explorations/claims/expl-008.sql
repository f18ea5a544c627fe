-- What the checkpointer doesn't write during the delay it spares nobody. Several seconds are at most
-- half a minute, and every round counts.
WITH written AS (
    SELECT bgwriter,
           min(reader) FILTER (event = 'update') AS least_at_once,
           max(reader) FILTER (event = 'update') AS most_at_once,
           min(reader) FILTER (event = 'update, wait') AS least_waited,
           max(reader) FILTER (event = 'update, wait') AS most_waited,
           min(meanwhile) FILTER (event = 'update, wait') AS least_meanwhile,
           max(meanwhile) FILTER (event = 'update, wait') AS most_meanwhile,
           max(meanwhile) FILTER (event = 'update') AS most_beside_the_read,
           min(dirty) FILTER (event = 'update') AS least_dirty,
           max(dirty) FILTER (event = 'update') AS most_dirty,
           min(dirty) FILTER (event = 'update, wait') AS least_left,
           max(dirty) FILTER (event = 'update, wait') AS most_left
    FROM waiting WHERE tuples >= 1000000 AND seconds <= 30 GROUP BY bgwriter
), compared AS (
    SELECT *,
           CASE WHEN least_meanwhile > most_beside_the_read THEN true
                WHEN most_meanwhile <= most_beside_the_read THEN false END AS writes,
           CASE WHEN most_waited < 0.95 * least_at_once THEN true
                WHEN least_waited >= 0.95 * most_at_once THEN false END AS spared,
           CASE WHEN most_left < 0.95 * least_dirty THEN true
                WHEN least_left >= 0.95 * most_dirty THEN false END AS fewer_dirty
    FROM written
)
SELECT 'during the delay the checkpointer writes pages' AS fact, writes AS so, true AS essential
FROM compared WHERE bgwriter = 'as by default'
UNION ALL
SELECT 'where only the checkpointer can, it spares the reader writing pages', writes AND spared,
       true
FROM compared WHERE bgwriter = 'off'
UNION ALL
SELECT 'with the background writer the delay spares the reader some', spared, false
FROM compared WHERE bgwriter = 'as by default'
UNION ALL
SELECT 'fewer pages are dirty after the delay', fewer_dirty, false
FROM compared WHERE bgwriter = 'off'
