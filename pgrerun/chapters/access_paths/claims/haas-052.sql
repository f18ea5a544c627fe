-- Rows that each form reads of the large table on 9.1 and on 9.2. A tenth fewer are still as many.
WITH reads AS (
    SELECT form, max(rows_read) FILTER (server = '9.1') AS before,
           max(rows_read) FILTER (server = '9.2') AS after
    FROM forms_on_releases GROUP BY form
)
SELECT 'a left join over an inner join reads less than a tenth of the rows on 9.2' AS fact,
       after < before / 10 AS so, true AS essential
FROM reads WHERE form = 'left join over an inner join'
UNION ALL
SELECT 'inner joins alone read as many as on 9.1', 1.1 * after >= before, true
FROM reads WHERE form = 'inner joins only'
UNION ALL
SELECT 'left joins in a row read as many as on 9.1', 1.1 * after >= before, true
FROM reads WHERE form = 'left joins in a row'
UNION ALL
SELECT 'NOT EXISTS over an inner join reads as many as on 9.1', 1.1 * after >= before, false
FROM reads WHERE form = 'NOT EXISTS over an inner join'
UNION ALL
SELECT 'today a key goes through a join in a left join over an inner join and in neither of those',
       bool_and(through = (form = 'left join over an inner join')), false
FROM forms WHERE form IN ('left join over an inner join', 'inner joins only', 'left joins in a row')
