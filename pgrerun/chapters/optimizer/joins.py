"""The second set of tests: nested loop, hash join or merge join, planned and forced."""

import math
from functools import partial
from statistics import median

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.queries import (
    HASH, JOIN_QUERIES, JOINS, LARGE, MERGE, NESTED, REPORT, counted, destroy, forced, join_query, joined, load_joined, method_of, selected, session, small_tuples,
    store_in_memory,
)  # fmt: skip
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, plans
from pgrerun.relations import Wisconsin, duck

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
            statement = selected(join_query(query, size, sizes(chapter)[size]))
            free = method_of(plans.explain(connection, statement))
            actual = connection.execute(counted(statement)).fetchone()[0]
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
    repeats = 3 if size == REPORT else 1
    with session(chapter.server) as connection, forced(connection, method):
        store_in_memory(connection)
        return {metric(query): median(_time(connection, join_query(query, size, sizes(chapter)[size])) for _ in range(repeats)) for query in _measured(method, size)}


def _time(connection: psycopg.Connection, statement: str) -> float:
    with clock.stopwatch() as watch:
        connection.execute(statement)
    destroy(connection)
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


_PAGES = {"without an index": (5, "on"), "without an index, nothing kept": (5, "off"), "with an index": (6, "on")}


def non_equal_pages(chapter: Chapter) -> pd.DataFrame:
    """What queries 5 and 6 touch at the report's size: plan, pages (heap and index), how often the inner side is asked, and the plan in full.

    In the second row the inner side isn't kept in memory between its scans (enable_material), as in 1990.
    """
    found = []
    with session(chapter.server) as connection:
        for title, (query, keep) in _PAGES.items():
            connection.execute(f"SET enable_material = {keep}")
            plan = plans.explain(connection, selected(join_query(query, REPORT, small_tuples())), execute=True)
            inner = next(node for node in plan.walk() if node.node_type == "Nested Loop").children[1]
            found.append((title, plan.buffers["shared_hit"] + plan.buffers["shared_read"], int(inner.loops), plan.shape()))
    return pd.DataFrame(found, columns=["plan", "pages", "scans of the inner side", "in full"])


SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def restricted(chapter: Chapter) -> pd.DataFrame:
    """Query 4 with a restriction of growing width, at the larger size: time it as the experiment "restriction", and return the planned methods.

    Columns: share (of the relation that the restriction lets through), planned.
    """
    one, two = joined(LARGE, indexed=True)
    tuples = sizes(chapter)[LARGE]
    statement = {share: f"SELECT count(a.unique1 + b.unique1) FROM {one} a, {two} b WHERE a.unique2 = b.unique2 AND b.unique2 < {round(share * tuples)}" for share in SHARES}

    def measure(method: str, block: Block) -> dict[str, float]:
        with session(chapter.server) as connection, forced(connection, method):
            return {_share(share): median(_elapsed(connection, sql) for _ in range(3)) for share, sql in statement.items()}

    chapter.compare("restriction", [Arm(method, partial(measure, method)) for method in JOINS], {_share(share): "s" for share in SHARES})
    with session(chapter.server) as connection:
        return pd.DataFrame([(share, method_of(plans.explain(connection, sql))) for share, sql in statement.items()], columns=["share", "planned"])


def _share(share: float) -> str:
    return f"share {share:g}"


def _elapsed(connection: psycopg.Connection, statement: str) -> float:
    with clock.stopwatch() as watch:
        connection.execute(statement)
    return watch.seconds


def restriction_ratios(chapter: Chapter) -> pd.DataFrame | None:
    """Time of nested loop and merge join over that of the hash join, by share: share, method, ratio, low, high."""
    found = []
    for share in SHARES:
        times = chapter.table("restriction", _share(share))
        if times.empty:
            return None
        for method in (NESTED, MERGE):
            ratio = statistics.ratio(times[method], times[HASH], seed=chapter.parameters.seed)
            found.append((share, method, ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(found, columns=["share", "method", "ratio", "low", "high"])


def too_long(chapter: Chapter) -> pd.DataFrame:
    """The nested loops that were left out, run once under a limit: query, limit (s), seconds (NaN if it was ended), least (times the hash join)."""
    found = []
    with session(chapter.server) as connection:
        for query in SCANNING:
            usual = chapter.table(experiment(LARGE), metric(query))[HASH].median()
            limit = PATIENCE * usual
            store_in_memory(connection)
            with forced(connection, NESTED):
                seconds = _limited(connection, join_query(query, LARGE, sizes(chapter)[LARGE]), limit)
            found.append((query, limit, seconds, (limit if math.isnan(seconds) else seconds) / usual))
    return pd.DataFrame(found, columns=["query", "limit", "seconds", "least"])


def _limited(connection: psycopg.Connection, statement: str, limit: float) -> float:
    """Seconds of a stored query, NaN if it was ended at the limit (s)."""
    connection.execute(f"SET statement_timeout = {max(1, round(1000 * limit))}")
    try:
        return _time(connection, statement)
    except psycopg.errors.QueryCanceled:
        return math.nan
    finally:
        connection.execute("RESET statement_timeout")


# ---- by something else than equality

POSTGRES, DUCKDB = "PostgreSQL", "DuckDB"
NON_EQUAL = "SELECT count(*) FROM {} a, {} b WHERE a.unique2 < b.unique2"


def elsewhere(chapter: Chapter) -> pd.DataFrame:
    """Joins by `<` on PostgreSQL and on DuckDB: relations (tuples in each), engine, join (the operator), pairs (that it finds).

    Also times them, as the experiment "non-equi-join".
    """
    relations = joined(REPORT, indexed=False)
    statement = NON_EQUAL.format(*relations)
    with duck.in_memory() as other, session(chapter.server) as connection:
        for number, name in enumerate(relations, start=1):
            Wisconsin(name, small_tuples(), attributes="1990", order=number).load_duckdb(other)
        run = {POSTGRES: connection.execute, DUCKDB: other.execute}
        operators = {POSTGRES: method_of(plans.explain(connection, statement)), DUCKDB: duck.joins_of(other, statement)[0].replace("_", " ").lower()}
        pairs = {engine: execute(statement).fetchone()[0] for engine, execute in run.items()}
        arms = [Arm(engine, partial(_seconds, execute, statement)) for engine, execute in run.items()]
        chapter.compare("non-equi-join", arms, {"time": "s"})
    return pd.DataFrame([(small_tuples(), engine, operators[engine], pairs[engine]) for engine in run], columns=["tuples", "engine", "join", "pairs"])


def _seconds(execute, statement: str, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        execute(statement).fetchall()
    return {"time": watch.seconds}


def only_nested(plans_found: pd.DataFrame | None, other: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether nothing but a nested loop joins by `<`, here and elsewhere."""
    if plans_found is None or other is None:
        return None
    here = plans_found[plans_found["query"].isin((5, 6)) & plans_found["obeyed"]]["method"]
    return {
        "PostgreSQL can be forced to nothing but a nested loop": bool((here == NESTED).all()),
        "DuckDB has nothing but a nested loop either": bool("nested loop" in other.set_index("engine").at[DUCKDB, "join"]),
    }


# ---- what forcing tells


def wrong_choice(plans_found: pd.DataFrame | None) -> bool | None:
    """Whether query 3, a range restriction and no index, is still joined by a nested loop."""
    if plans_found is None:
        return None
    chosen = plans_found[plans_found["chosen"]].set_index("query")["method"]
    return bool(chosen[3] == NESTED)


def regrets(chapter: Chapter, plans_found: pd.DataFrame | None, size: str) -> pd.DataFrame | None:
    """What the planner's choice costs: query, planned, fastest (by median), ratio of their times with low and high."""
    if plans_found is None or chapter.table(experiment(size), metric(1)).empty:
        return None
    chosen, found = plans_found[plans_found["chosen"]].set_index("query")["method"], []
    for query in EQUAL:
        times = chapter.table(experiment(size), metric(query)).dropna(axis=1)
        fastest = times.median().idxmin()
        ratio = statistics.ratio(times[chosen[query]], times[fastest], seed=chapter.parameters.seed)
        found.append((query, chosen[query], fastest, ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(found, columns=["query", "planned", "fastest", "ratio", "low", "high"])


def method_facts(scans_found: pd.DataFrame, joins_found: pd.DataFrame) -> dict[str, bool]:
    """Whether the report's way of testing works: any plan can be had by flags, and the planner's own is the one it thinks cheapest."""
    scans = scans_found.groupby(["layout", "selectivity"])
    equal = joins_found[joins_found["query"].isin(EQUAL)]
    # The planner takes costs within a hundredth for equal, and then looks at the start-up cost (STD_FUZZ_FACTOR in pathnode.c).
    cheapest = lambda rows: bool(rows.loc[rows["chosen"], "cost"].iloc[0] <= 1.01 * rows["cost"].min())  # noqa: E731
    return {
        "every scan of the first set can be forced": bool(scans_found["obeyed"].all()),
        "every join by equality can be forced": bool(equal["obeyed"].all()),
        "left to itself the planner takes the plan that costs least, to a hundredth": all(cheapest(rows) for _, rows in scans)
        and all(cheapest(rows) for _, rows in equal.groupby("query")),
    }
