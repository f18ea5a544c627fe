"""The second set of tests: nested loop, hash join or merge join, planned and timed."""

import math
from functools import partial
from statistics import median

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments.scans import seconds
from pgrerun.chapters.optimizer.queries import JOIN_QUERIES, LARGE, SMALL
from pgrerun.chapters.optimizer.variants import HASH, JOINS, NESTED, SQL
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, plans
from pgrerun.lab.relations import Wisconsin, duck
from pgrerun.lab.server import value

PATIENCE = 20  # times the hash join's time that a nested loop is given


@experiment()
def prepared(chapter: Chapter) -> None:
    """Load the relations of both sizes, without indices and with a clustered one on unique2."""
    for size, tuples in queries.sizes(chapter).items():
        for indexes in ((), ("unique2",)):
            for order, name in enumerate(queries.joined(size, indexed=bool(indexes)), start=1):
                relation = Wisconsin(name, tuples, attributes="1990", order=order)
                relation.load(chapter.server, indexes=indexes)


# ---- what is planned


@experiment(claims=["lai-074", "lai-077", "lai-095"])
def planned(chapter: Chapter, size: str = SMALL) -> pd.DataFrame:
    """A row per query and join method.

    Columns: query, actual (rows), method, cost (NaN where the method couldn't be forced), rows,
    chosen, obeyed (see `variants.alternatives`).
    """
    rows = []
    with variants.session(chapter.server) as connection:
        for query in JOIN_QUERIES:
            statement = queries.selected(queries.join(chapter, query, size))
            actual = value(connection, int, queries.counted(statement))
            for row in variants.alternatives(connection, statement, tuple(JOINS)):
                rows.append({"query": query, "actual": actual} | row)
    found = pd.DataFrame(rows)
    return found.assign(cost=found["cost"].where(found["obeyed"]))


# ---- what is timed


def name(size: str) -> str:
    """Of a size's experiment in the run record."""
    return f"joins, {size} size"


def metric(query: int) -> str:
    """Name of a query's time."""
    return f"query {query}"


@experiment(claims=["lai-072", "lai-073", "lai-075", "lai-078"])
def timed(chapter: Chapter) -> None:
    """Time the stored queries under every method that can be forced, at both sizes.

    Nested loops that take too long are left out.
    """
    units = {metric(query): "s" for query in JOIN_QUERIES}
    for size in queries.sizes(chapter):
        compared = [Variant(method, partial(_timed, chapter, method, size)) for method in JOINS]
        chapter.compare(name(size), compared, units)


def _measured(method: str, size: str) -> list[int]:
    """The queries that a method is timed on."""
    if method != NESTED:
        return list(queries.EQUAL)
    return [query for query in JOIN_QUERIES if size == SMALL or query not in queries.UNINDEXED]


def _timed(chapter: Chapter, method: str, size: str, block: Block) -> dict[str, float]:
    repeats = 3 if size == SMALL else 1
    times = {}
    with variants.session(chapter.server) as connection, variants.forced(connection, method):
        queries.store_in_memory(connection)
        for query in _measured(method, size):
            statement = queries.join(chapter, query, size)
            each = [seconds(connection, statement) for _ in range(repeats)]
            times[metric(query)] = median(each)
    return times


@experiment()
def too_long(chapter: Chapter) -> pd.DataFrame:
    """The nested loops that were left out, run once under a limit.

    Columns: query, limit (s), seconds (NaN if it was ended), least (times the hash join).
    """
    rows = []
    with variants.session(chapter.server) as connection:
        queries.store_in_memory(connection)
        for query in queries.UNINDEXED:
            usual = chapter.table(name(LARGE), metric(query))[HASH].median()
            limit = PATIENCE * usual
            with variants.forced(connection, NESTED):
                took = limited(connection, queries.join(chapter, query, LARGE), limit)
            rows.append((query, limit, took, (limit if math.isnan(took) else took) / usual))
    return pd.DataFrame(rows, columns=["query", "limit", "seconds", "least"])


def limited(connection: psycopg.Connection, statement: str, limit: float) -> float:
    """Seconds of a stored query, NaN if it was ended at the limit (s)."""
    connection.execute(f"SET statement_timeout = {max(1, round(1000 * limit))}")
    try:
        return seconds(connection, statement)
    except psycopg.errors.QueryCanceled:
        return math.nan
    finally:
        connection.execute("RESET statement_timeout")


# ---- indices and restrictions

_KEPT = {
    "without an index": (5, "on"),
    "without an index, nothing kept": (5, "off"),
    "with an index": (6, "on"),
}


@experiment()
def non_equal_pages(chapter: Chapter) -> pd.DataFrame:
    """What queries 5 and 6 touch at the report's size.

    In the second row the inner side isn't kept in memory between its scans (enable_material), as
    in 1990. Columns: plan, pages (heap and index), scans of the inner side.
    """
    rows = []
    with variants.session(chapter.server) as connection:
        for title, (query, keep) in _KEPT.items():
            connection.execute(f"SET enable_material = {keep}")
            statement = queries.selected(queries.join(chapter, query, SMALL))
            plan = plans.explain(connection, statement, execute=True)
            _, inner = plan.find("Nested Loop")[0].children
            rows.append((title, plan.page_accesses, int(inner.loops)))
    return pd.DataFrame(rows, columns=["plan", "pages", "scans of the inner side"])


SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
RESTRICTION = "restriction"  # experiment


def share_metric(share: float) -> str:
    """Name of the time at a share of the relation."""
    return f"share {share:g}"


@experiment()
def restricted(chapter: Chapter) -> pd.DataFrame:
    """Time query 4, counting, with a restriction of growing width at the larger size.

    Columns of what is planned: share (of the relation that the restriction lets through), planned.
    """
    one, two = queries.joined(LARGE, indexed=True)
    bounds = {share: round(share * queries.sizes(chapter)[LARGE]) for share in SHARES}
    statements = {
        share: SQL.text("queries.restricted", one=one, two=two, bound=bound)
        for share, bound in bounds.items()
    }

    def measure(method: str, block: Block) -> dict[str, float]:
        times = {}
        with variants.session(chapter.server) as connection, variants.forced(connection, method):
            for share, query in statements.items():
                times[share_metric(share)] = median(seconds(connection, query) for _ in range(3))
        return times

    compared = [Variant(method, partial(measure, method)) for method in JOINS]
    chapter.compare(RESTRICTION, compared, {share_metric(share): "s" for share in SHARES})
    with variants.session(chapter.server) as connection:
        chosen = [
            variants.method_of(plans.explain(connection, query)) for query in statements.values()
        ]
    return pd.DataFrame({"share": SHARES, "planned": chosen})


# ---- by something else than equality

POSTGRES, DUCKDB = "PostgreSQL", "DuckDB"


@experiment(claims=["lai-077"])
def elsewhere(chapter: Chapter) -> pd.DataFrame:
    """Joins by `<` on PostgreSQL and on DuckDB, also timed as the experiment "non-equi-join".

    Columns: tuples (in each relation), engine, join (the operator), pairs (that it finds).
    """
    one, two = queries.joined(SMALL, indexed=False)
    statement = SQL.text("queries.non_equal", one=one, two=two)
    with duck.in_memory() as other, variants.session(chapter.server) as connection:
        for order, relation in enumerate((one, two), start=1):
            wisconsin = Wisconsin(relation, queries.small_tuples(), attributes="1990", order=order)
            wisconsin.load_duckdb(other)
        run = {POSTGRES: connection.execute, DUCKDB: other.execute}
        operators = {
            POSTGRES: variants.method_of(plans.explain(connection, statement)),
            DUCKDB: duck.joins_of(other, statement)[0].replace("_", " ").lower(),
        }
        pairs = {engine: execute(statement).fetchone()[0] for engine, execute in run.items()}

        def measure(engine: str, block: Block) -> dict[str, float]:
            with clock.stopwatch() as watch:
                run[engine](statement).fetchall()
            return {"time": watch.seconds}

        compared = [Variant(engine, partial(measure, engine)) for engine in run]
        chapter.compare("non-equi-join", compared, {"time": "s"})
    rows = [(queries.small_tuples(), engine, operators[engine], pairs[engine]) for engine in run]
    return pd.DataFrame(rows, columns=["tuples", "engine", "join", "pairs"])
