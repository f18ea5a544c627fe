"""PostgreSQL that is spread over several servers, where the one at hand can do that."""

import psycopg
from psycopg import sql

from pgrerun.lab.relations.wisconsin import Wisconsin


def spread(connection: psycopg.Connection, relation: str, attribute: str) -> bool:
    """Distribute a relation that is filled by an attribute; False, and nothing, without Citus."""
    known = (
        "SELECT 1 FROM pg_proc WHERE proname = 'create_distributed_table'"
        " AND pg_function_is_visible(oid)"
    )
    if not connection.execute(known).fetchone():
        return False
    command = sql.SQL("SELECT create_distributed_table({}, {})")
    connection.execute(command.format(sql.Literal(relation), sql.Literal(attribute)))
    return True


def load(connection: psycopg.Connection, attribute: str, relation: Wisconsin) -> None:
    """Create and fill a relation, distributed by an attribute where the server can do that."""
    relation.load(connection)
    spread(connection, relation.name, attribute)
