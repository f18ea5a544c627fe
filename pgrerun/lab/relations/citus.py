"""PostgreSQL that is spread over several servers, where the one at hand can do that."""

import psycopg
from psycopg import sql

from pgrerun.lab.relations.wisconsin import Wisconsin


def load(connection: psycopg.Connection, attribute: str, relation: Wisconsin) -> None:
    """Create and fill a relation, distributed by an attribute where the server has Citus."""
    relation.load(connection)
    known = (
        "SELECT 1 FROM pg_proc WHERE proname = 'create_distributed_table'"
        " AND pg_function_is_visible(oid)"
    )
    if connection.execute(known).fetchone():
        command = sql.SQL("SELECT create_distributed_table({}, {})")
        connection.execute(command.format(sql.Literal(relation.name), sql.Literal(attribute)))
