"""Operator classes without one of their support functions, which is how a type was sorted or indexed before it had that function."""

import psycopg

from pgrerun.errors import CannotMeasure

SORT_SUPPORT = {"btree": 2, "gist": 11}
"""The number of the support function that PostgreSQL 9.2 (B-tree) and PostgreSQL 14 (GiST) brought."""

_COMPARISONS = {1: "<", 2: "<=", 3: "=", 4: ">=", 5: ">"}


def without_sort_support(connection: psycopg.Connection, method: str, opclass: str, name: str) -> None:
    """Make operator class `name` as a copy of `opclass` without sort support.

    A B-tree's class gets comparison operators of its own, `<#` and so on, so that ORDER BY ... USING <# finds this class and no
    other. CannotMeasure without the right to make operator classes.
    """
    if not connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()[0]:
        raise CannotMeasure("superuser", "only a superuser may make an operator class without sort support")
    [(oid, family, type_name)] = connection.execute(
        "SELECT c.oid::bigint, opcfamily::bigint, opcintype::regtype::text FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname = %s AND amname = %s",
        [opclass, method],
    ).fetchall()
    exists = "SELECT 1 FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname = %s AND amname = %s AND opcnamespace = current_schema()::regnamespace"
    if connection.execute(exists, [name, method]).fetchone():
        return
    functions = connection.execute(
        "SELECT amprocnum, amproc::regprocedure::text FROM pg_amproc p JOIN pg_opclass c ON c.opcfamily = p.amprocfamily WHERE c.oid = %s"
        " AND amproclefttype = opcintype AND amprocrighttype = opcintype AND amprocnum <> %s ORDER BY 1", [oid, SORT_SUPPORT[method]],
    ).fetchall()  # fmt: skip
    operators = connection.execute(
        "SELECT amopstrategy, oprname, oprcode::regproc::text, oprleft::regtype::text, oprright::regtype::text, amopopr::regoperator::text,"
        " (SELECT f.opfname FROM pg_opfamily f WHERE f.oid = amopsortfamily) FROM pg_amop JOIN pg_operator o ON o.oid = amopopr"
        " WHERE amopfamily = %s AND (%s <> 'btree' OR (amoplefttype = %s::regtype AND amoprighttype = %s::regtype)) ORDER BY 1",
        [family, method, type_name, type_name],
    ).fetchall()
    parts = [f"FUNCTION {number} {function}" for number, function in functions]
    with connection.transaction():
        for strategy, sign, function, left, right, operator, sorts in operators:
            if method == "btree":
                sign = own(_COMPARISONS[strategy])
                connection.execute(f"CREATE OPERATOR {sign} (PROCEDURE = {function}, LEFTARG = {left}, RIGHTARG = {right})")
                operator = f"{sign} ({left}, {right})"
            else:
                operator = f"{sign} ({left}, {right})"
            parts.append(f"OPERATOR {strategy} {operator}" + (f" FOR ORDER BY {sorts}" if sorts else ""))
        storage = _storage(connection, oid)
        connection.execute(f"CREATE OPERATOR CLASS {name} FOR TYPE {type_name} USING {method} AS {', '.join(parts + storage)}")


def own(sign: str) -> str:
    """The operator that belongs to a B-tree class without sort support."""
    return f"{sign}#"


def _storage(connection: psycopg.Connection, opclass: int) -> list[str]:
    [(stored,)] = connection.execute("SELECT nullif(opckeytype, 0)::regtype::text FROM pg_opclass WHERE oid = %s", [opclass]).fetchall()
    return [f"STORAGE {stored}"] if stored else []
