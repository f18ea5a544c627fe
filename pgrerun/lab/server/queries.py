"""One row, or one value, of a query that has it, with its type."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import sql

T = TypeVar("T")
Query = str | sql.Composed
Parameters = Sequence[object] | Mapping[str, object] | None


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
