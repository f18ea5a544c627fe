-- By the function's name in the catalog and by what the planner expects, which at no tenth may be off
-- by more than a tenth. With the fault put back it has to be, or what is expected tells nothing.
-- Before PostgreSQL 11, <= and >= shared the estimators of < and >.
WITH named AS (
    SELECT bool_or(estimator NOT IN (own, shared)) AS wrong
    FROM registered
    JOIN (VALUES ('<', 'scalarltsel', 'scalarltsel'), ('<=', 'scalarlesel', 'scalarltsel'),
                 ('>', 'scalargtsel', 'scalargtsel'), ('>=', 'scalargesel', 'scalargtsel'))
         AS right_ones (operator, own, shared) USING (operator)
), estimates AS (
    SELECT bool_or(abs(expected / rows - 1) > 0.1) FILTER (fault = 'as it is') AS off,
           bool_or(abs(expected / rows - 1) > 0.1) FILTER (fault = 'wrong function for >') AS put_back
    FROM greater_than
)
SELECT wrong OR off AS still_there FROM named, estimates WHERE put_back
