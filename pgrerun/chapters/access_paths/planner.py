"""What the planner knows of the visibility map, what autovacuum does for it, and what both don't know."""

import time
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import SCATTERED, accounts, blocks, only, timed
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import plans
from pgrerun.relations import loading

# ---- false statistics

SHARES = (0, 25, 50, 75, 90, 100)  # per cent of the pages that pg_class claims to be all-visible
PATHS = {"index-only scan": ("indexonlyscan",), "plain index scan": ("indexscan",), "sequential scan": ("seqscan",)}
_ASKED = 10  # one row in so many


def _query(chapter: Chapter) -> str:
    return f"SELECT sum(abalance) FROM {SCATTERED} WHERE aid BETWEEN 1 AND {chapter.parameters.accounts // _ASKED}"


def told(chapter: Chapter) -> pd.DataFrame:
    """Costs and choice of the planner while pg_class.relallvisible is falsified; the table and its map stay as they are.

    A row per share: percent, a column of estimated cost per path, and chosen (node of the plan when it may choose).
    """
    server, rows = chapter.server, []
    accounts(chapter).ready(server, SCATTERED)
    with server.connect() as connection:
        pages = blocks(connection, SCATTERED)
        for percent in SHARES:
            _tell(connection, pages * percent // 100)
            costs = {}
            for path, scans in PATHS.items():
                only(connection, *scans)
                costs[path] = plans.explain(connection, _query(chapter)).total_cost
            only(connection, "seqscan", "indexscan", "indexonlyscan", "bitmapscan")
            rows.append({"percent": percent} | costs | {"chosen": plans.explain(connection, _query(chapter)).children[0].node_type})
        _tell(connection, pages)
    return pd.DataFrame(rows)


def _tell(connection: psycopg.Connection, pages: int) -> None:
    """Make pg_class claim that so many pages are all-visible. CannotMeasure before PostgreSQL 18."""
    if not connection.execute("SELECT to_regproc('pg_restore_relation_stats') IS NOT NULL").fetchone()[0]:
        raise CannotMeasure("PostgreSQL 18", "the statistics of a relation can be set from PostgreSQL 18 on")
    connection.execute(
        "SELECT pg_restore_relation_stats('schemaname', current_schema()::text, 'relname', %s::text, 'relallvisible', %s::int)", [SCATTERED, pages]
    )


def _linear(found: pd.DataFrame) -> bool:
    """Whether the cost falls in a straight line from 0 to 100 per cent; pages are counted in whole ones."""
    at = found.set_index("percent")["index-only scan"]
    return all(abs((at[p] - at[100]) / (at[0] - at[100]) - (1 - p / 100)) < 0.01 for p in SHARES)


def cost_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the planner uses the share of all-visible pages in pg_class, and only that."""
    if found is None:
        return None
    at = found.set_index("percent")
    return {
        "the estimated cost of an index-only scan falls with that share": bool(at["index-only scan"].is_monotonic_decreasing and at["index-only scan"].is_unique),
        "a false share changes the plan": bool(at["chosen"].nunique() > 1),
        "other scans' costs don't depend on it": bool(at["plain index scan"].nunique() == at["sequential scan"].nunique() == 1),
    }


def refined_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the cost has become anything else than that of a plain index scan with fewer pages, which it was in 9.2 (cost_index in costsize.c)."""
    if found is None:
        return None
    at = found.set_index("percent")
    return {
        "the cost is no longer that of a plain index scan minus the all-visible share of its pages": not _linear(found),
        "what a look into the map and a vain visit cost is estimated": bool(at.at[0, "index-only scan"] != at.at[0, "plain index scan"]),
    }


MISLED, INFORMED = "misled by false statistics", "with true statistics"


def misled(chapter: Chapter) -> None:
    """No page is all-visible any more; the planner is told that all are, or the truth."""
    server = chapter.server
    server.extension("pg_visibility")
    with server.connect() as connection:
        pages = blocks(connection, SCATTERED)
        connection.execute("SELECT pg_truncate_visibility_map(%s::text::regclass)", [SCATTERED])
        arms = [Arm(name, partial(_planned, chapter, connection), prepare=partial(_prepared, connection, claimed)) for name, claimed in ((MISLED, pages), (INFORMED, 0))]
        chapter.compare("misled", arms, {"seconds": "s"})
        connection.execute(f"VACUUM {SCATTERED}")


def _prepared(connection: psycopg.Connection, claimed: int, block: Block) -> None:
    _tell(connection, claimed)
    only(connection, "seqscan", "indexscan", "indexonlyscan", "bitmapscan")


def _planned(chapter: Chapter, connection: psycopg.Connection, block: Block) -> dict[str, float]:
    return {"seconds": timed(connection, _query(chapter), 0)}


def regret(chapter: Chapter) -> statistics.Interval | None:
    """Time of the plan made with false statistics over that of the plan made with true ones."""
    return chapter.ratio("misled", "seconds", MISLED, INFORMED)


# ---- autovacuum

GROWING, GROWING_BEFORE, CHANGED = "rows are only inserted", "the same, by the rule before PostgreSQL 13", "a row in twenty is updated"
_PATIENCE, _ROWS = 40, 20_000  # seconds; rows
_TABLES = {GROWING: "growing", GROWING_BEFORE: "growing_before", CHANGED: "changed"}


def autovacuum(chapter: Chapter) -> pd.DataFrame:
    """Wait until autovacuum has come by, and see which tables it vacuumed.

    A row per table: table, pages, marked (all-visible by the map), vacuumed (times, by autovacuum). Waiting ends when the worker
    that vacuumed the first table is gone: all tables were as they are before any worker started, so it had the choice of all.
    """
    server = chapter.cluster()
    server.extension("pg_visibility")
    with server.connect() as connection:
        _fill(connection)
        with server.reloaded(autovacuum_naptime="1s", autovacuum="on"):
            _await_round(connection)
            rows = [(table, *_state(connection, name)) for table, name in _TABLES.items()]
    return pd.DataFrame(rows, columns=["table", "pages", "marked", "vacuumed"])


def _fill(connection: psycopg.Connection) -> None:
    for table, name in _TABLES.items():
        options = " WITH (autovacuum_vacuum_insert_threshold = -1)" if table == GROWING_BEFORE else ""
        with connection.transaction():
            loading.replace(connection, name, f"CREATE TABLE {name} (id int, v int, filler char(84)){options}")
            connection.execute(f"INSERT INTO {name} SELECT n, 0, '' FROM generate_series(1, {_ROWS}) AS n")
            if table == CHANGED:
                connection.execute(f"CREATE INDEX ON {name} (id)")
    # else the insertions are reported after the vacuum, which would count for a reason to vacuum again
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute(f"VACUUM (ANALYZE) {_TABLES[CHANGED]}")
    connection.execute(f"UPDATE {_TABLES[CHANGED]} SET v = 1 WHERE id %% 20 = 0", [])
    connection.execute("SELECT pg_stat_force_next_flush()")  # autovacuum goes by what has been reported


def _await_round(connection: psycopg.Connection) -> None:
    working = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if _state(connection, _TABLES[GROWING])[2] and not connection.execute(working).fetchone()[0]:
            return
        time.sleep(0.05)


def _state(connection: psycopg.Connection, name: str) -> tuple[int, int, int]:
    [(marked, times)] = connection.execute(
        "SELECT (pg_visibility_map_summary(%s::text::regclass)).all_visible, pg_stat_get_autovacuum_count(%s::text::regclass)", [name, name]
    ).fetchall()
    return blocks(connection, name), marked, times


def autovacuum_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether tables are left whose index-only scans would gain by a vacuum."""
    if found is None:
        return None
    unmarked = found.set_index("table").eval("marked < 0.1 * pages")
    return {
        "a table that only grows stays unmarked": bool(unmarked[GROWING]),
        "a table with an update on every page stays unmarked": bool(unmarked[CHANGED]),
    }
