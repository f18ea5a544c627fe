"""What the planner knows of the visibility map, what autovacuum does for it, and what both don't
know.
"""

import time

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    SCATTERED,
    SQL,
    allow_only,
    build,
    ready,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import plans, sizes

# ---- false statistics

SHARES = (0, 25, 50, 75, 90, 100)  # per cent of the pages that pg_class claims to be all-visible
PATHS = {
    "index-only scan": "indexonlyscan",
    "plain index scan": "indexscan",
    "sequential scan": "seqscan",
}
_FREE = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")


@experiment(claims=["haas-044", "haas-047"])
def costs(chapter: Chapter) -> pd.DataFrame:
    """Costs and choice of the planner while pg_class.relallvisible is falsified.

    The table and its map stay as they are. A row per share: percent, a column of estimated cost
    per path (PATHS), and chosen (node of the plan when the planner may choose).
    """
    query, rows = SQL.text("planner.tenth", last=chapter.parameters.accounts // 10), []
    ready(chapter.server, chapter.parameters.accounts, SCATTERED)
    with chapter.server.connect() as connection:
        pages = sizes.pages(connection, SCATTERED)
        for percent in SHARES:
            _claim(connection, pages * percent // 100)
            row = {"percent": percent}
            for path, allowed in PATHS.items():
                allow_only(connection, allowed)
                row[path] = plans.explain(connection, query).total_cost
            allow_only(connection, *_FREE)
            row["chosen"] = plans.explain(connection, query).scan_of(SCATTERED).node_type
            rows.append(row)
        _claim(connection, pages)
    return pd.DataFrame(rows)


def _claim(connection: psycopg.Connection, pages: int) -> None:
    """Make pg_class claim so many pages all-visible. CannotMeasure before PostgreSQL 18."""
    if SQL.run(connection, "planner.can_set_statistics").fetchone() != (True,):
        raise CannotMeasure(
            "PostgreSQL 18", "the statistics of a relation can be set from PostgreSQL 18 on"
        )
    SQL.run(connection, "planner.claim_visible", pages=pages)


# ---- autovacuum

GROWING, CHANGED = "rows are only inserted", "a row in twenty is updated"
TABLES = {
    GROWING: "growing",
    "the same, by the rule before PostgreSQL 13": "growing_before",
    CHANGED: "changed",
}
_PATIENCE = 40  # seconds


@experiment(claims=["haas-040"])
def autovacuum(chapter: Chapter) -> pd.DataFrame:
    """Wait until autovacuum has come by, and see which tables it vacuumed.

    A row per table: table, pages, marked (all-visible by the map), vacuumed (times, by
    autovacuum). Waiting ends when the worker that vacuumed the first table is gone: all tables
    were as they are before any worker started, so it had the choice of all.
    """
    server = chapter.cluster()
    server.extension("pg_visibility")
    with server.connect() as connection:
        for name in TABLES.values():
            build(connection, name, f"planner.{name}")
        with server.reloaded(autovacuum_naptime="1s", autovacuum="on"):
            _await_round(connection)
            rows = [(table, *_state(connection, name)) for table, name in TABLES.items()]
    return pd.DataFrame(rows, columns=["table", "pages", "marked", "vacuumed"])


def _await_round(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        _, _, vacuumed = _state(connection, TABLES[GROWING])
        if vacuumed and SQL.run(connection, "planner.workers").fetchone() == (0,):
            return
        time.sleep(0.05)


def _state(connection: psycopg.Connection, name: str) -> tuple[int, int, int]:
    [(marked, times)] = SQL.run(connection, "planner.state", relation=name).fetchall()
    return sizes.pages(connection, name), marked, times
