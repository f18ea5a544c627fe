-- An operator class without its sort support function: how a type was sorted or indexed before it
-- had that function.

-- name: exists
SELECT 1 FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE opcname = :'copy' AND amname = :'method'
  AND opcnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema());

-- name: copy
-- The statements that make the copy. A B-tree's class gets comparison operators of its own, `<#`
-- and so on, so that ORDER BY ... USING <# finds this class and no other.
WITH class AS (
  SELECT opcfamily, opcintype, opckeytype FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
  WHERE opcname = :'original' AND amname = :'method'
    AND opcnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'pg_catalog')
), functions AS (
  -- all but sort support, which PostgreSQL 9.2 (B-tree) and PostgreSQL 14 (GiST) brought
  SELECT format('FUNCTION %s %s', amprocnum, amproc::regprocedure) AS part
  FROM class JOIN pg_amproc ON amprocfamily = opcfamily
  WHERE amproclefttype = opcintype AND amprocrighttype = opcintype
    AND amprocnum <> CASE :'method' WHEN 'btree' THEN 2 WHEN 'gist' THEN 11 END
), operators AS (
  SELECT amopstrategy, oprcode::regproc AS function, oprleft::regtype AS "left",
         oprright::regtype AS "right", f.opfname,
         oprname || CASE :'method' WHEN 'btree' THEN '#' ELSE '' END AS sign
  FROM class JOIN pg_amop ON amopfamily = class.opcfamily JOIN pg_operator o ON o.oid = amopopr
  LEFT JOIN pg_opfamily f ON f.oid = amopsortfamily
  WHERE :'method' <> 'btree' OR (amoplefttype = opcintype AND amoprighttype = opcintype)
), parts AS (
  SELECT part FROM functions
  UNION ALL
  SELECT format('OPERATOR %s %s (%s, %s)%s', amopstrategy, sign, "left", "right",
                ' FOR ORDER BY ' || opfname) FROM operators
  UNION ALL
  SELECT format('STORAGE %s', opckeytype::regtype) FROM class WHERE opckeytype <> 0
)
SELECT format('CREATE OPERATOR %s (PROCEDURE = %s, LEFTARG = %s, RIGHTARG = %s)',
              sign, function, "left", "right")
FROM operators WHERE :'method' = 'btree'
UNION ALL
SELECT format('CREATE OPERATOR CLASS %I FOR TYPE %s USING %I AS %s', :'copy', opcintype::regtype,
              :'method', (SELECT string_agg(part, ', ') FROM parts))
FROM class;
