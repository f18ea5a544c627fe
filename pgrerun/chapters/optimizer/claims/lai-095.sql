SELECT 'every scan of the first set can be forced' AS fact, bool_and(obeyed) AS so
FROM planned_scans WHERE relation = 'tenk1'
UNION ALL
SELECT 'every join by equality can be forced', bool_and(obeyed)
FROM planned_joins WHERE size = 'report' AND query <= 4
