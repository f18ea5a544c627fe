SELECT 'pgbench ran the reduced script from a file, each statement once per transaction' AS fact,
       0 < updated AND updated = inserted AND inserted = transactions AS so
FROM stock_pgbench
