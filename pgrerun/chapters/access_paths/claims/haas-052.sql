SELECT 'a left join over an inner join hands its key through a join' AS fact, through AS so,
       true AS essential
FROM forms WHERE form = 'left join over an inner join'
UNION ALL
SELECT 'inner joins alone don''t', NOT through, true FROM forms WHERE form = 'inner joins only'
UNION ALL
SELECT 'left joins in a row don''t', NOT through, true FROM forms WHERE form = 'left joins in a row'
UNION ALL
SELECT 'NOT EXISTS and LATERAL don''t', NOT bool_or(through), false
FROM forms WHERE form LIKE 'NOT EXISTS%' OR form LIKE 'LATERAL%'
