-- Growth without HOT over that with it; where nothing grows with it, over that by a page.
SELECT relation AS part, without / greatest(1, hot) AS value
FROM (
    SELECT relation, max(after - before) FILTER (variant = 'neither HOT nor pruning') AS without,
           max(after - before) FILTER (variant = 'HOT') AS hot
    FROM small_tables WHERE relation IN ('tellers', 'branches') GROUP BY relation
)
