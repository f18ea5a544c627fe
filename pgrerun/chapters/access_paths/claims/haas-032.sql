-- On 9.1, where nothing but vacuum used the map: pages that it scans of a table of which no page has
-- changed, or one in a hundred, evenly spread, and of the same without the map.
WITH found AS (
    SELECT every, scanned / pages AS scanned, without / pages AS without
    FROM vacuums_on_releases WHERE server = '9.1'
)
SELECT 'on 9.1 vacuum scans less than a hundredth of an unchanged table, and without the map all'
           AS fact,
       scanned < 0.01 AND without = 1 AS so, true AS essential
FROM found WHERE every = 0
UNION ALL
SELECT 'where one page in a hundred has changed it scans less than a tenth', scanned < 0.1, true
FROM found WHERE every = 100
UNION ALL
SELECT 'where one page in thirty-two has changed it still skips most of the others', scanned < 0.5,
       false
FROM found WHERE every = 32
