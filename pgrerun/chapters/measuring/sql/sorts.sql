-- The same order of integers twice: PostgreSQL's own, and one whose comparison is called as any data
-- type's is, through the function manager.

-- name: operators
CREATE FUNCTION general_lt(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION general_eq(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE OPERATOR <# (leftarg = int4, rightarg = int4, function = general_lt);
CREATE OPERATOR =# (leftarg = int4, rightarg = int4, function = general_eq);
CREATE OPERATOR CLASS general_ops FOR TYPE int4 USING btree AS
    OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 btint4cmp(int4, int4);

-- name: exists
SELECT to_regoperator('<#(int4,int4)') IS NOT NULL;

-- name: catalog
SELECT c.opcname, o.oprname, compares.prosrc, sorts.prosrc
FROM pg_opclass c
JOIN pg_amop a ON a.amopfamily = c.opcfamily AND a.amopstrategy = 1
    AND a.amoplefttype = 'int4'::regtype AND a.amoprighttype = 'int4'::regtype
JOIN pg_operator o ON o.oid = a.amopopr
JOIN pg_amproc f1 ON f1.amprocfamily = c.opcfamily AND f1.amprocnum = 1
    AND f1.amproclefttype = 'int4'::regtype AND f1.amprocrighttype = 'int4'::regtype
JOIN pg_proc compares ON compares.oid = f1.amproc
LEFT JOIN pg_amproc f2 ON f2.amprocfamily = c.opcfamily AND f2.amprocnum = 2
    AND f2.amproclefttype = 'int4'::regtype
LEFT JOIN pg_proc sorts ON sorts.oid = f2.amproc
WHERE c.opcname IN ('int4_ops', 'general_ops')
    AND c.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')
ORDER BY c.opcname DESC;

-- name: specific
SELECT n FROM numbers ORDER BY n USING < OFFSET :all_but_one;

-- name: general
SELECT n FROM numbers ORDER BY n USING OPERATOR(:"schema".<#) OFFSET :all_but_one;
