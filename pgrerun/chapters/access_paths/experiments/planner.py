"""What the planner knows of the visibility map, what autovacuum does for it, and what both don't
know.
"""

import time
from collections.abc import Iterator

import psycopg

from pgrerun.chapters.access_paths.accounts import SCATTERED, SQL, allow_only, build, ready
from pgrerun.lab.instruments import plans, sizes
from pgrerun.lab.server import releases
from pgrerun.lab.testbed import Row, Testbed, experiment

SHARES = (0, 25, 50, 75, 90, 100)  # per cent of the pages that pg_class claims to be all-visible
PATHS = {"index_only": "indexonlyscan", "plain": "indexscan", "sequential": "seqscan"}


@experiment(units={**dict.fromkeys(PATHS, "cost units"), "chosen": "text"})
def costs(bed: Testbed) -> Iterator[Row]:
    """Estimated cost of three paths, and the planner's choice, while relallvisible is falsified.

    The table and its map stay as they are. The statistics of a relation can be set by a function
    from PostgreSQL 18 on.
    """
    releases.require(bed.server.version, "pg_restore_relation_stats")
    query = SQL.text("planner.tenth", last=bed.parameters.accounts // 10)
    ready(bed.server, bed.parameters.accounts, SCATTERED)
    with bed.server.connect() as connection:
        pages = sizes.pages(connection, SCATTERED)
        for percent in SHARES:
            SQL.run(connection, "planner.claim_visible", pages=pages * percent // 100)
            row: Row = {"percent": percent}
            for path, allowed in PATHS.items():
                allow_only(connection, allowed)
                row[path] = float(plans.explain(connection, query).total_cost)
            allow_only(connection, *PATHS.values(), "bitmapscan")
            yield row | {"chosen": plans.explain(connection, query).scan_of(SCATTERED).node_type}
        SQL.run(connection, "planner.claim_visible", pages=pages)


# ---- autovacuum

GROWING, CHANGED = "rows are only inserted", "a row in twenty is updated"
TABLES = {
    GROWING: "growing",
    "the same, by the rule before PostgreSQL 13": "growing_before",
    CHANGED: "changed",
}
_PATIENCE = 40  # seconds


@experiment(units={"pages": "pages", "marked": "pages", "vacuumed": "times"}, needs=["restart"])
def autovacuum(bed: Testbed) -> Iterator[Row]:
    """Wait until autovacuum has come by, and see which tables it vacuumed and what is marked.

    Waiting ends when the worker that vacuumed the first table is gone: all tables were as they are
    before any worker started, so it had the choice of all.
    """
    server = bed.cluster()
    server.extension("pg_visibility")
    with server.connect() as connection:
        for name in TABLES.values():
            build(connection, name, f"planner.{name}")
        with server.reloaded(autovacuum_naptime="1s", autovacuum="on"):
            _await_round(connection)
            for table, name in TABLES.items():
                marked, times = _state(connection, name)
                pages = sizes.pages(connection, name)
                yield {"table": table, "pages": pages, "marked": marked, "vacuumed": times}


def _await_round(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        _, vacuumed = _state(connection, TABLES[GROWING])
        if vacuumed and SQL.run(connection, "planner.workers").fetchone() == (0,):
            return
        time.sleep(0.05)


def _state(connection: psycopg.Connection, name: str) -> tuple[int, int]:
    """Pages that the map marks, and how often autovacuum came."""
    [state] = SQL.run(connection, "planner.state", relation=name).fetchall()
    return state
