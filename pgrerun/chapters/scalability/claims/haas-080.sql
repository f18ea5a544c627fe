-- A lock that each page takes exclusively lets one session at a time look for a page to give up.
SELECT 'each page that is read into a full pool takes the one lock of all sessions exclusively, in ' || left(build, 3) AS fact,
       CASE WHEN reads >= 0.05 * lookups THEN exclusively >= 0.99 * reads END AS so, build LIKE '9.2%' AS essential
FROM page_replacement WHERE data = 'don''t fit'
UNION ALL SELECT 'where the data fit, hardly a lookup takes it, in ' || left(build, 3), exclusively < 0.01 * lookups, false
FROM page_replacement WHERE data = 'fit'
UNION ALL SELECT 'sessions wait for it, in ' || left(build, 3), waits > 0, false
FROM page_replacement WHERE data = 'don''t fit'
