-- Either symptom would be the fault: one scan, or one cost, for every share of the rows.
SELECT count(DISTINCT method) = 1 OR count(DISTINCT cost) = 1 AS still_there
FROM planned_scans WHERE chosen AND relation = 'tenk1' AND layout = 'clustered'
