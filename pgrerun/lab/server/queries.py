"""One row, or one value, of a query that has it, with its type; whether a relation is there."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import sql

T = TypeVar("T")
Query = str | sql.Composed
Parameters = Sequence[object] | Mapping[str, object] | None


def exists(connection: psycopg.Connection, relation: str) -> bool:
    """Whether the search path leads to a relation of this name, on every release."""
    query = "SELECT count(*) FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"
    return value(connection, int, query, [relation]) > 0


def row(
    connection: psycopg.Connection, query: Query, parameters: Parameters = None
) -> tuple[Any, ...]:
    """The first row of a query. LookupError if it has none: it must be one that always has."""
    found = connection.execute(query, parameters).fetchone()
    if found is None:
        raise LookupError(f"No row came back from: {query}")
    return found


def value(
    connection: psycopg.Connection, kind: type[T], query: Query, parameters: Parameters = None
) -> T:
    """The first column of a query's first row, as psycopg gives it.

    TypeError if it isn't of the `kind` that the caller relies on, LookupError without a row.
    """
    found = row(connection, query, parameters)[0]
    if not isinstance(found, kind):
        raise TypeError(f"{type(found).__name__} instead of {kind.__name__} came from: {query}")
    return found
