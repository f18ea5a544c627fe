"""DuckDB as something to compare with: a database file of its own that keeps relations and runs SQL.

A file and not memory, because PostgreSQL has to write, too. Nothing is tuned on either side.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from pgrerun.relations.wisconsin import Wisconsin


class Duck:
    """One database, removed when it is closed; use it in a `with` block."""

    version = duckdb.__version__

    def __init__(self, folder: str | Path | None = None):
        """`folder`: where to put the file; by default where temporary files go."""
        self._folder = Path(tempfile.mkdtemp(prefix="pgrerun-duckdb-", dir=folder))
        self._connection = duckdb.connect(str(self._folder / "relations.duckdb"))

    def __enter__(self) -> "Duck":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def load(self, relation: Wisconsin) -> None:
        """Create and fill a relation, replacing an earlier one."""
        relation.load_duckdb(self._connection)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement and fetch everything that it returns."""
        return self._connection.execute(sql).fetchall()

    def close(self) -> None:
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)
