"""The second set of tests: nested loop, hash join or merge join, planned and forced."""

import math
from functools import partial
from statistics import median

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.queries import (
    HASH, JOIN_QUERIES, JOINS, LARGE, MERGE, NESTED, REPORT, forced, join_query, load_joined, method_of, session, small_tuples, stored,
)  # fmt: skip
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, plans

EQUAL = (1, 2, 3, 4)  # the queries that join by equality
SCANNING = (1, 3)  # of those, the ones without B-trees: their nested loop grows with the square
PATIENCE = 20  # times the hash join's time that a nested loop is given


def sizes(chapter: Chapter) -> dict[str, int]:
    """Tuples of the relations of either size."""
    return {REPORT: small_tuples(), LARGE: chapter.parameters.times * small_tuples()}


def prepared(chapter: Chapter) -> None:
    """Load the relations of both sizes."""
    for size, tuples in sizes(chapter).items():
        load_joined(chapter.server, size, tuples)


# ---- what is planned


def planned(chapter: Chapter, size: str = REPORT) -> pd.DataFrame:
    """A row per query and join method: query, method, cost, rows (estimated), actual, chosen, obeyed (whether the flags could force it)."""
    found = []
    with session(chapter.server) as connection:
        for query in JOIN_QUERIES:
            statement = join_query(query, size, sizes(chapter)[size])
            free = method_of(plans.explain(connection, statement))
            actual = connection.execute(f"SELECT count(*) FROM ({statement}) AS joined").fetchone()[0]
            for method in JOINS:
                with forced(connection, method):
                    plan = plans.explain(connection, statement)
                obeyed = method_of(plan) == method
                found.append((query, method, plan.total_cost if obeyed else math.nan, plan.rows_estimated, actual, method == free, obeyed))
    return pd.DataFrame(found, columns=["query", "method", "cost", "rows", "actual", "chosen", "obeyed"])


def choices(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """A row per query: planned in 1990 and here, rows estimated and actual, and the cost of each method (none where it can't be had)."""
    if found is None:
        return None
    printed = published.derived("optimizer_joins")
    costs = found.pivot(index="query", columns="method", values="cost")[list(JOINS)]
    rows = found[found["chosen"]].set_index("query")[["method", "rows", "actual"]].rename(columns={"method": "planned here", "rows": "rows estimated", "actual": "rows"})
    rows.insert(0, "planned in 1990", printed[printed["planned"]].set_index("query")["method"])
    return rows.join(costs).reset_index()


# ---- what is measured


def timed(chapter: Chapter) -> None:
    """Time the stored queries under every join method that can be forced, at both sizes; nested loops that take too long are left out."""
    for size, tuples in sizes(chapter).items():
        arms = [Arm(method, partial(_all_queries, chapter, method, size)) for method in JOINS]
        chapter.compare(experiment(size), arms, {metric(query): "s" for query in JOIN_QUERIES})


def experiment(size: str) -> str:
    """Name of a size's experiment in the run record."""
    return f"joins, {size} size"


def metric(query: int) -> str:
    """Name of a query's time."""
    return f"query {query}"


def _measured(method: str, size: str) -> list[int]:
    """The queries that a method is timed on."""
    if method != NESTED:
        return list(EQUAL)
    return [query for query in JOIN_QUERIES if size == REPORT or query not in SCANNING]


def _all_queries(chapter: Chapter, method: str, size: str, block: Block) -> dict[str, float]:
    repeats = 5 if size == REPORT else 3
    with session(chapter.server) as connection, forced(connection, method):
        return {metric(query): median(_time(connection, join_query(query, size, sizes(chapter)[size])) for _ in range(repeats)) for query in _measured(method, size)}


def _time(connection: psycopg.Connection, select: str) -> float:
    with clock.stopwatch() as watch:
        connection.execute(stored(select))
    connection.execute("DROP TABLE pg_temp.temp1")
    return watch.seconds


def over(chapter: Chapter, query: int, method: str, base: str, size: str = LARGE) -> statistics.Interval | None:
    """Time of one method over that of another for a query."""
    return chapter.ratio(experiment(size), metric(query), method, base)


def index_gain(chapter: Chapter, size: str = REPORT) -> statistics.Interval | None:
    """Time of query 5's nested loop, which has no B-tree, over that of query 6's, which has."""
    tables = [chapter.table(experiment(size), metric(query)) for query in (5, 6)]
    if tables[0].empty:
        return None
    return statistics.ratio(tables[0][NESTED], tables[1][NESTED], seed=chapter.parameters.seed)


def too_long(chapter: Chapter) -> pd.DataFrame:
    """The nested loops that were left out, run once under a limit: query, limit (s), seconds (NaN if it was ended), least (times the hash join)."""
    found = []
    with session(chapter.server) as connection:
        for query in SCANNING:
            usual = chapter.table(experiment(LARGE), metric(query))[HASH].median()
            limit = PATIENCE * usual
            with forced(connection, NESTED):
                seconds = _limited(connection, join_query(query, LARGE, sizes(chapter)[LARGE]), limit)
            found.append((query, limit, seconds, (limit if math.isnan(seconds) else seconds) / usual))
    return pd.DataFrame(found, columns=["query", "limit", "seconds", "least"])


def _limited(connection: psycopg.Connection, select: str, limit: float) -> float:
    """Seconds of a stored query, NaN if it was ended at the limit (s)."""
    connection.execute(f"SET statement_timeout = {max(1, round(1000 * limit))}")
    try:
        return _time(connection, select)
    except psycopg.errors.QueryCanceled:
        return math.nan
    finally:
        connection.execute("RESET statement_timeout")
