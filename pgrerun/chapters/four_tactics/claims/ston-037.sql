WITH beyond AS (SELECT pattern, fetched - asked AS more FROM kernel_ahead)
SELECT 'two reads in a row make it fetch ahead' AS fact, more > 0 AS so, true AS essential
FROM beyond WHERE pattern = 'two in a row'
UNION ALL
SELECT 'jumps away and back end that',
       max(more) FILTER (WHERE pattern = '40, with jumps') < max(more) FILTER (WHERE pattern = '40 in a row') / 2, true
FROM beyond
UNION ALL
SELECT 'a single read makes it fetch ahead', more > 0, false FROM beyond WHERE pattern = 'one block'
