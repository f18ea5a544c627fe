-- Either symptom would be the fault: one scan for every share of the rows, or one cost of an index scan, chosen or
-- forced.
SELECT count(DISTINCT method) FILTER (chosen) = 1
       OR count(DISTINCT cost) FILTER (method = 'index scan') = 1 AS still_there
FROM planned_scans WHERE relation = 'tenk1' AND layout = 'clustered'
