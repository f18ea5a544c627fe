"""DuckDB as another engine to compare with: a database in memory, and how it joins."""

import re

import duckdb

_JOIN = re.compile(r'"name":\s*"([A-Z_]*JOIN)\s*"')


def in_memory(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A new database in memory that uses so many threads; close it, or use it as a context manager."""
    return duckdb.connect(config={"threads": threads})


def joins_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """The physical join operators of a query's plan, topmost first: "HASH_JOIN", "PIECEWISE_MERGE_JOIN", "IE_JOIN" and so on."""
    return _JOIN.findall(connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchone()[1])
