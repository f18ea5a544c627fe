-- Once analyzed, a range costs the same however the rows lie, to a twentieth.
SELECT max(cost) FILTER (layout = 'clustered') / max(cost) FILTER (layout = 'not clustered')
       BETWEEN 1 / 1.05 AND 1.05 AS still_there
FROM clustering WHERE relation = 'analyzed'
