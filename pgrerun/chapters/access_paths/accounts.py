"""pgbench's accounts as the talk has it, and what a statement on it is held to.

Two relations with the same rows: one has the primary key alone, the other a covering index on
(aid, abalance) beside it, so that arms can be interleaved without creating and dropping indexes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun import published, tables
from pgrerun.chapter import Chapter
from pgrerun.errors import RerunError
from pgrerun.instruments import clock
from pgrerun.parameters import time_to_run
from pgrerun.published import access_paths as printed
from pgrerun.relations import loading
from pgrerun.server import Server

PAGE = 8192  # bytes
KEYED, COVERED, SCATTERED = "accounts", "covered", "scattered"
"""Accounts with the primary key alone; with the covering index as well; with it, and the rows in random order on the pages."""

_COLUMNS = "aid int NOT NULL, bid int, abalance int, filler char(84)"
_ORDER = {SCATTERED: " ORDER BY hashint4(n), n"}  # an order that has nothing to do with aid, and that every run repeats


@dataclass(frozen=True)
class Accounts:
    """So many rows of pgbench's accounts; aid from 1, abalance 0."""

    rows: int

    def load(self, server_or_connection: Server | psycopg.Connection, *names: str) -> None:
        """Create the named relations (KEYED, COVERED, SCATTERED; any other name is like KEYED), vacuumed and analyzed; autovacuum leaves them alone."""
        with loading.session(server_or_connection) as connection:
            for name in names:
                with connection.transaction():
                    loading.replace(connection, name, f"CREATE TABLE {name} ({_COLUMNS}) WITH (autovacuum_enabled = off)")
                    connection.execute(
                        f"INSERT INTO {name} SELECT n, (n - 1) / {printed.ACCOUNTS_PER_SCALE} + 1, 0, ''"
                        f" FROM generate_series(1, {self.rows}) AS n{_ORDER.get(name, '')}"
                    )
                    connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY (aid)")
                    if name in (COVERED, SCATTERED):
                        connection.execute(f"CREATE INDEX {name}_covering ON {name} (aid, abalance)")
                connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")

    def missing(self, server: Server, *names: str) -> list[str]:
        """Those of the relations that the server hasn't got, or has in another size."""
        with server.connect() as connection:
            return [name for name in names if not loading.holds(connection, name, self.rows)]

    def ready(self, server: Server, *names: str) -> None:
        """Create those of the relations that are missing."""
        if missing := self.missing(server, *names):
            self.load(server, *missing)


def accounts(chapter: Chapter) -> Accounts:
    """As many as the parameters say."""
    return Accounts(chapter.parameters.accounts)


def pool_of_print(rows: int) -> int:
    """Buffers (pages) that are to this table what the talk's memory was to its own."""
    memory = published.cell("access_paths_setup", "memory", "value") * 2**30 / PAGE
    return max(64, round(memory / printed.table_pages(printed.accounts()) * printed.table_pages(rows)))


def blocks(connection: psycopg.Connection, relation: str, fork: str = "main") -> int:
    """Size in pages."""
    return connection.execute(f"SELECT pg_relation_size(%s::text::regclass, %s) / {PAGE}", [relation, fork]).fetchone()[0]


def timed(connection: psycopg.Connection, statement: str, expected: object = None) -> float:
    """Seconds that a statement takes; RerunError if its first value isn't `expected`, where that is given."""
    with clock.stopwatch() as watch:
        rows = connection.execute(statement, prepare=False).fetchall()  # a prepared one would keep its plan when settings change
    if expected is not None and rows[0][0] != expected:
        raise RerunError(f"“{statement}” gave {rows[0][0]} instead of {expected}, so its time says nothing.")
    return watch.seconds


def only(connection: psycopg.Connection, *nodes: str) -> None:
    """Leave the planner only these ways to scan: "seqscan", "indexscan", "indexonlyscan", "bitmapscan".

    A plain index scan is possible only while index-only scans are off; "indexonlyscan" needs "indexscan" on as well.
    """
    wanted = {*nodes, *({"indexscan"} if "indexonlyscan" in nodes else ())}
    for name in ("seqscan", "indexscan", "indexonlyscan", "bitmapscan"):
        connection.execute(f"SET enable_{name} = {'on' if name in wanted else 'off'}")
    connection.execute("SET max_parallel_workers_per_gather = 0")


def facts_table(facts: Mapping[str, object] | None, caption: str, headings: Sequence[str] = ("what", "found")) -> tables.Table | None:
    """A row per finding."""
    return None if facts is None else tables.table(pd.DataFrame({headings[0]: list(facts), headings[1]: list(facts.values())}, dtype=object), caption)


def apparatus(chapter: Chapter) -> tables.Table:
    """The talk's machine and data, and this run's."""
    then, now = published.table("access_paths_setup")["value"], chapter.run.environment["machine"]
    mb, here = 2**20, accounts(chapter).rows
    size = lambda rows: f"{printed.table_pages(rows) * PAGE / mb:,.0f} MB, each index {printed.tree_pages(rows)[0] * PAGE / mb:,.0f} MB"
    rows = [
        ("system", "PostgreSQL 9.1 and 9.2", f"PostgreSQL {chapter.run.environment['server']['version']}"),
        ("machine", "a laptop", f"{now['cpus_usable']} processors ({now['cpu_model']})"),
        ("memory", f"{then['memory']:g} GB", f"{now['memory_bytes'] / 2**30:,.0f} GB, of which a server may use {pool_of_print(here) * PAGE / mb:,.1f} MB where memory must be short"),
        ("accounts", f"{printed.accounts():,}", f"{here:,}"),
        ("size of accounts", size(printed.accounts()), size(here)),
        ("sessions", f"{then['clients']:g}", f"{chapter.parameters.clients}"),
        ("one run", f"{then['minutes']:g} minutes", f"{chapter.parameters.lookups:,} lookups"),
        ("time to run", "", time_to_run("access_paths")),
    ]  # fmt: skip
    return tables.table(pd.DataFrame(rows, columns=["", "2012", "this run"]), "Apparatus then and now")
