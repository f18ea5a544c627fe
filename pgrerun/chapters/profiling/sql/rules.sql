-- name: few_tuples
SELECT count(*) FROM onek WHERE unique2 >= 0;

-- name: many_tuples
SELECT count(*) FROM tenk1 WHERE unique2 >= 0;

-- name: many_attributes
SELECT count(*) FROM tenk1
WHERE unique1 >= 0 AND unique2 >= 0 AND two >= 0 AND four >= 0 AND ten >= 0 AND twenty >= 0
    AND hundred >= 0 AND thousand >= 0 AND twothousand >= 0 AND fivethousand >= 0
    AND tenthousand >= 0 AND odd >= 0 AND even >= 0;

-- name: ruled
SELECT count(*) FROM ruled WHERE unique2 >= 0;
