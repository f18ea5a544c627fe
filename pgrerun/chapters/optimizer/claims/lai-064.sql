-- Before PostgreSQL 11, <= and >= shared the estimators of < and >.
SELECT bool_or(estimator NOT IN (own, shared)) AS still_there
FROM registered
JOIN (VALUES ('<', 'scalarltsel', 'scalarltsel'), ('<=', 'scalarlesel', 'scalarltsel'),
             ('>', 'scalargtsel', 'scalargtsel'), ('>=', 'scalargesel', 'scalargtsel'))
     AS right_ones (operator, own, shared) USING (operator)
