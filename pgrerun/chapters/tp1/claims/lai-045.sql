SELECT 'reads' AS part, sum(reads) / count(DISTINCT transaction) AS value
FROM postgres95_ladder WHERE rung = 'one backend' AND steady HAVING count(*) > 0
UNION ALL
SELECT 'writes', sum(writes) / count(DISTINCT transaction)
FROM postgres95_ladder WHERE rung = 'one backend' AND steady HAVING count(*) > 0
