-- The faults of 1990, put back into a server: an operator's entry in pg_operator names the function
-- that estimates its selectivity. Run in a transaction that is rolled back.

-- name: registered
SELECT oprname AS operator, oprrest::text AS estimator FROM pg_operator
WHERE oprleft = 'int4'::regtype AND oprright = 'int4'::regtype
    AND oprname IN ('<', '<=', '>', '>=')
ORDER BY oprname;

-- name: exchanged
-- In the catalog itself, as the report mended it: ALTER OPERATOR does so from PostgreSQL 9.5 on.
UPDATE pg_operator SET oprrest = 'scalarltsel' WHERE oid = '>(int4,int4)'::regoperator;

-- name: constant
-- eqsel gives one over the number of distinct values, whatever the constant; 1990 took three over it
ALTER OPERATOR pg_catalog.< (int4, int4) SET (RESTRICT = eqsel);
ALTER OPERATOR pg_catalog.> (int4, int4) SET (RESTRICT = eqsel);

-- name: multiplied
-- The planner pairs the bounds of a range by the estimators' own identities, so the same functions
-- under other names don't make a range.
CREATE FUNCTION pg_temp.scalarltsel_alias(internal, oid, internal, int4) RETURNS float8
    LANGUAGE internal STABLE STRICT AS 'scalarltsel';
CREATE FUNCTION pg_temp.scalargtsel_alias(internal, oid, internal, int4) RETURNS float8
    LANGUAGE internal STABLE STRICT AS 'scalargtsel';
ALTER OPERATOR pg_catalog.< (int4, int4) SET (RESTRICT = pg_temp.scalarltsel_alias);
ALTER OPERATOR pg_catalog.> (int4, int4) SET (RESTRICT = pg_temp.scalargtsel_alias);

-- name: unset
-- A result whose expected size nobody sets is one of no rows. The function behind this estimator
-- looks at none of its arguments and answers nothing, which as a number is 0.
CREATE FUNCTION pg_temp.unset(internal, oid, internal, int2, internal) RETURNS float8
    LANGUAGE internal STABLE STRICT AS 'pg_stat_clear_snapshot';
ALTER OPERATOR pg_catalog.= (int4, int4) SET (JOIN = pg_temp.unset);
