"""Through which connection a relation is loaded, and which relations may be replaced.

Relations of ours carry a comment that says so. A relation of the same name without
it belongs to somebody else and is never dropped.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from pgrerun.errors import ServerError
from pgrerun.lab.server import Server, value

MARK = "pgrerun: made for an experiment, replaced at will"


@contextmanager
def session(server_or_connection: Server | psycopg.Connection) -> Iterator[psycopg.Connection]:
    """Give an autocommit connection: the one handed in, or one of the server's for this block.

    VACUUM must stand outside a transaction, hence autocommit; ValueError otherwise.
    """
    if not isinstance(server_or_connection, psycopg.Connection):
        with server_or_connection.connect() as connection:
            yield connection
        return
    if not server_or_connection.autocommit:
        raise ValueError(
            "loading needs an autocommit connection, because VACUUM can't run in a transaction"
        )
    yield server_or_connection


def is_ours(connection: psycopg.Connection, name: str) -> bool:
    """Whether the current schema has a relation of this name that this package made."""
    return _taken(connection, name) is True


def holds(connection: psycopg.Connection, name: str, rows: int) -> bool:
    """Whether the current schema has a relation of this name that this package made, with so many
    rows.
    """
    counted = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))
    return is_ours(connection, name) and value(connection, int, counted) == rows


def _taken(connection: psycopg.Connection, name: str) -> bool | None:
    """Whether the relation of this name in the current schema is ours; None if there is none."""
    found = connection.execute(
        "SELECT coalesce(obj_description(c.oid, 'pg_class') = %s, false) FROM pg_class c"
        " WHERE c.relname = %s AND c.relnamespace = ("
        " SELECT oid FROM pg_namespace WHERE nspname = current_schema())",
        (MARK, name),
    ).fetchone()
    return found[0] if found else None


def make(connection: psycopg.Connection, name: str, create: str, *more: str) -> None:
    """Create a relation as `replace` does, and run the statements that fill it, in one
    transaction.
    """
    with connection.transaction():
        replace(connection, name, create)
        for statement in more:
            connection.execute(statement)


def replace(connection: psycopg.Connection, name: str, create: str) -> None:
    """Create relation `name` by the statement `create`, dropping an earlier one of ours.

    Call it in a transaction that loads the relation as well: a failed load then leaves
    the earlier relation, and COPY ... FREEZE is allowed. The relation is created in the
    connection's current schema. Raises ServerError when the name is taken by a relation
    that isn't ours; nothing is changed then.
    """
    ours = _taken(connection, name)
    if ours is False:
        schema = value(connection, str, "SELECT current_schema()")
        raise ServerError(
            f"Schema {schema} already holds a relation {name} that was not made by this package, so"
            " it is left alone. Use an empty database or schema, or rename that relation."
        )
    if ours:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    connection.execute(create)
    connection.execute(
        sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(name), sql.Literal(MARK))
    )
