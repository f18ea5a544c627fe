"""The second set of tests: nested loop, hash join or merge join, planned and timed."""

from functools import partial
from statistics import median

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments.scans import seconds
from pgrerun.chapters.optimizer.queries import EQUAL, JOIN_QUERIES, LARGE, SMALL
from pgrerun.chapters.optimizer.variants import JOINS, NESTED, SESSION, SQL
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, plans
from pgrerun.lab.relations import Wisconsin, duck
from pgrerun.lab.server import value


@experiment(prepares=True)
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


STORED = "report's size, stored"  # beside SMALL and LARGE, where tuples are made and skipped
WAYS = {SMALL: SMALL, LARGE: LARGE, STORED: SMALL}  # to the sizes


def name(way: str) -> str:
    """Of the experiment in the run record."""
    return f"joins, {way}"


def metric(query: int) -> str:
    """Name of a query's time."""
    return f"query {query}"


@experiment(claims=["lai-078"])
def instructions(chapter: Chapter) -> pd.DataFrame:
    """What the queries execute at the report's size, by every method that can be forced.

    Nothing is stored, and nested loops without an index are left out: a hundred times as much.
    A row per query, whose number is in the column query; the other columns are methods.
    """
    statements = {}
    for query in JOIN_QUERIES:
        for method in JOINS if query in EQUAL else (NESTED,):
            if method == NESTED and query in queries.UNINDEXED:
                continue
            off = dict.fromkeys(variants.switched_off(method), "off")
            allowed = dict.fromkeys(JOINS[method], "on")
            statement = queries.discarded(queries.join(chapter, query, SMALL))
            statements[query, method] = (SESSION | allowed | off, statement)
    counted = callgrind.executed(chapter.cluster(), statements).unstack()
    return counted.rename_axis("query").reset_index()


@experiment(claims=["lai-072", "lai-073", "lai-075", "lai-078"])
def timed(chapter: Chapter) -> None:
    """Time the queries under every method that can be forced, at both sizes, and as in print.

    Nested loops that take too long are left out.
    """
    units = {metric(query): "s" for query in JOIN_QUERIES}
    for way in WAYS:
        compared = [Variant(method, partial(_timed, chapter, method, way)) for method in JOINS]
        chapter.compare(name(way), compared, units)


def _measured(method: str, size: str) -> list[int]:
    """The queries that a method is timed on."""
    if method != NESTED:
        return list(EQUAL)
    return [query for query in JOIN_QUERIES if size == SMALL or query not in queries.UNINDEXED]


def _timed(chapter: Chapter, method: str, way: str, block: Block) -> dict[str, float]:
    times, size = {}, WAYS[way]
    with variants.session(chapter.server) as connection, variants.forced(connection, method):
        queries.store_in_memory(connection)
        for query in _measured(method, size):
            statement = queries.join(chapter, query, size)
            if way != STORED:
                statement = queries.discarded(statement)
            # a millisecond or less at the report's size, but for loops that grow with the square
            short = size == SMALL and not (method == NESTED and query in queries.UNINDEXED)
            each = [seconds(connection, statement) for _ in range(15 if short else 3)]
            times[metric(query)] = median(each)
    return times


# ---- pages

KEPT, ANEW, INDEXED = (
    "without an index",
    "without an index, nothing kept",
    "with an index",
)
_KEPT = {KEPT: (5, "on"), ANEW: (5, "off"), INDEXED: (6, "on")}


@experiment()
def non_equal_pages(chapter: Chapter) -> pd.DataFrame:
    """What queries 5 and 6 touch at the report's size.

    With ANEW the inner side isn't kept in memory between its scans (enable_material), as in 1990.
    Columns: plan, pages (heap and index), scans of the inner side.
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


# ---- by something else than equality

POSTGRES, DUCKDB = "PostgreSQL", "DuckDB"


@experiment(claims=["lai-077"])
def elsewhere(chapter: Chapter) -> pd.DataFrame:
    """Joins by `<` on PostgreSQL and on DuckDB.

    Columns: engine, join (the operator), pairs (that it finds).
    """
    one, two = queries.joined(SMALL, indexed=False)
    statement = SQL.text("queries.non_equal", one=one, two=two)
    with duck.in_memory() as other, variants.session(chapter.server) as connection:
        for order, relation in enumerate((one, two), start=1):
            wisconsin = Wisconsin(relation, queries.small_tuples(), attributes="1990", order=order)
            wisconsin.load_duckdb(other)
        planned = variants.method_of(plans.explain(connection, statement))
        operator = duck.joins_of(other, statement)[0].replace("_", " ").lower()
        found = [
            (POSTGRES, planned, value(connection, int, statement)),
            (DUCKDB, operator, other.execute(statement).fetchone()[0]),
        ]
    return pd.DataFrame(found, columns=["engine", "join", "pairs"])
