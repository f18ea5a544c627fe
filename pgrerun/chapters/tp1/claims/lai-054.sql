SELECT 'reads' AS part, sum(reads) / count(DISTINCT transaction) AS value
FROM postgres95_ladder WHERE rung = '48 pages' AND steady HAVING count(*) > 0
