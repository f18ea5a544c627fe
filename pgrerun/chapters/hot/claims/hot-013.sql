-- Growth without HOT over that with it; where nothing grows with it, over that by a page.
SELECT relation AS part, without / greatest(1, hot) AS value
FROM (
    SELECT relation, max(after - before) FILTER (server = 'before-hot') AS without,
           max(after - before) FILTER (server = 'hot') AS hot
    FROM small_tables_then WHERE relation IN ('tellers', 'branches') GROUP BY relation
)
