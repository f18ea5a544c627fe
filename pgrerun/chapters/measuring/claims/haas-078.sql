SELECT 'the index is never scanned' AS fact, scans = 0 AS so
FROM index_scans WHERE variant = 'an index on the expressions'
