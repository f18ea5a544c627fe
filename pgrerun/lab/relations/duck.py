"""DuckDB as something to compare with, in memory or in a file of its own; nothing is tuned.

Where PostgreSQL has to write, DuckDB gets a file (`Duck`); to see how it joins, memory will do.
"""

import re
from typing import Any

import duckdb
import numpy as np

from pgrerun.lab.relations.wisconsin import Wisconsin
from pgrerun.lab.server.private import Closing, PrivateDirectory, base_directory

_JOIN = re.compile(r'"name":\s*"([A-Z_]*JOIN)\s*"')


class Duck(Closing):
    """One database where our clusters are, removed when it is closed; use it in a `with` block."""

    version = duckdb.__version__

    def __init__(self) -> None:
        self._home = PrivateDirectory(base_directory())
        self._connection = duckdb.connect(str(self._home.path / "relations.duckdb"))

    def load(self, relation: Wisconsin) -> None:
        """Create and fill a relation, replacing an earlier one."""
        relation.load_duckdb(self._connection)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement and fetch everything that it returns."""
        return self._connection.execute(sql).fetchall()

    def columns(self, sql: str) -> dict[str, np.ndarray]:
        """What a query gives, by column, each of shape (tuples,)."""
        return self._connection.execute(sql).fetchnumpy()

    def close(self) -> None:
        self._connection.close()
        self._home.close()


def in_memory() -> duckdb.DuckDBPyConnection:
    """A new database in memory that uses one thread.

    Close it, or use it as a context manager.
    """
    return duckdb.connect(config={"threads": 1})


def joins_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """The physical join operators of a query's plan, topmost first: "HASH_JOIN",
    "PIECEWISE_MERGE_JOIN", "IE_JOIN" and so on.
    """
    [(_, plan)] = connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    return _JOIN.findall(plan)
