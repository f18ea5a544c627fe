SELECT count(DISTINCT method) = 1 AND count(DISTINCT cost) = 1 AS still_there
FROM planned_scans WHERE chosen AND relation = 'tenk1' AND layout = 'clustered'
