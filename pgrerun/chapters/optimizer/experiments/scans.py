"""The first set of tests: sequential scan or index scan, planned and timed, by selectivity."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.variants import (
    ATTRIBUTES,
    BITMAP,
    CLUSTERED,
    COLD,
    INDEX,
    REPORT,
    SEQUENTIAL,
    TIMED,
    WARM,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, cold_files, plans, sizes
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.server import Server

FORCED = (SEQUENTIAL, INDEX, BITMAP)
AGAIN = f"{SEQUENTIAL}, again"  # the same a second time: what the machine's noise looks like
STORED = "stored"


def load(server: Server, relation: str, tuples: int, order: int = 1) -> None:
    """A relation with B-trees on unique2, its tuples' order, and on unique1, a random one."""
    wisconsin = Wisconsin(relation, tuples, attributes="1990", order=order)
    wisconsin.load(server, indexes=("unique2", "unique1"))
    if server.can("checkpoint"):  # nothing of the load is written while scans are timed
        with server.connect() as connection:
            connection.execute("CHECKPOINT")


@experiment(prepares=True)
def prepared(chapter: Chapter) -> None:
    """Load both relations."""
    for relation in (REPORT, TIMED):
        load(chapter.server, relation, queries.tuples(chapter, relation))


# ---- what is planned


def timed_at(chapter: Chapter) -> list[float]:
    """The selectivities at which scans are timed: the report's first to its last, equal steps."""
    ends = queries.steps()
    return np.linspace(ends[0], ends[-1], chapter.parameters.points).round(4).tolist()


@experiment(claims=["lai-070", "lai-071", "lai-095"])
def planned(chapter: Chapter, relation: str = REPORT) -> pd.DataFrame:
    """Every plan of the sweep in one of the two relations.

    Columns: layout, selectivity, method, cost, rows, chosen, obeyed (see `variants.alternatives`).
    """
    with variants.session(chapter.server) as connection:
        return planned_with(chapter, connection, relation)


def planned_with(
    chapter: Chapter,
    connection: psycopg.Connection,
    relation: str,
    layouts: Sequence[str] = tuple(ATTRIBUTES),
) -> pd.DataFrame:
    """The same on a connection, for some layouts."""
    rows = []
    for layout in layouts:
        for selectivity in queries.steps() if relation == REPORT else timed_at(chapter):
            query = queries.selected(queries.scan_of(chapter, relation, layout, selectivity))
            for row in variants.alternatives(connection, query, FORCED):
                rows.append({"layout": layout, "selectivity": selectivity} | row)
    return pd.DataFrame(rows)


def switch(sequential: Callable[[int], bool], most: int) -> float:
    """The share of `most` tuples from which on a sequential scan is planned; 1 if none ever is.

    `sequential` tells it for a number of tuples, of which at least two are asked for.
    """
    first = 2 + bisect_left(range(2, most + 1), True, key=sequential)
    return min(first / most, 1.0)


def planned_switch(
    chapter: Chapter,
    connection: psycopg.Connection,
    layout: str,
    relation: str = REPORT,
    **settings: float,
) -> float:
    """The selectivity from which on the sequential scan is planned, under these cost settings."""
    tuples = queries.tuples(chapter, relation)

    def sequential(count: int) -> bool:
        query = queries.selected(queries.scan_of(chapter, relation, layout, count / tuples))
        return variants.method_of(plans.explain(connection, query)) == SEQUENTIAL

    with connection.transaction(force_rollback=True):
        for name, value in settings.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        return switch(sequential, tuples - 2)  # the query's lower bound leaves two keys out


@experiment(claims=["lai-068"])
def switches(chapter: Chapter, relation: str = REPORT) -> dict[str, float]:
    """The planned switch-over of both layouts at the server's own settings."""
    with variants.session(chapter.server) as connection:
        return {
            layout: planned_switch(chapter, connection, layout, relation) for layout in ATTRIBUTES
        }


@experiment(claims=["lai-070"])
def scanned_pages(chapter: Chapter) -> pd.DataFrame:
    """Pages that each scan of the clustered attribute touches in the report's relation.

    Columns: selectivity, one per method, pages (of the relation).
    """
    rows = []
    with variants.session(chapter.server) as connection:
        whole = sizes.pages(connection, REPORT)
        for selectivity in queries.steps():
            query = queries.selected(queries.scan_of(chapter, REPORT, CLUSTERED, selectivity))
            row = {"selectivity": selectivity}
            for method in FORCED:
                with variants.forced(connection, method):
                    row[method] = plans.explain(connection, query, execute=True).page_accesses
            rows.append(row | {"pages": whole})
    return pd.DataFrame(rows)


# ---- what is timed


@experiment(claims=["lai-062", "lai-070", "lai-094"])
def timed(chapter: Chapter) -> None:
    """Time every forced scan with the relation in memory."""
    for layout in ATTRIBUTES:
        _compare(chapter, layout, WARM, FORCED)


@experiment()
def timed_cold(chapter: Chapter) -> None:
    """The same with the relation in neither the buffer pool nor the operating system's cache."""
    server = chapter.cluster()
    server.extension("pg_buffercache")
    server.require("files")
    forget = partial(cold_files.forget_relation, server, relation=TIMED)
    for layout in ATTRIBUTES:
        _compare(chapter, layout, COLD, FORCED, forget)


@experiment(claims=["lai-070"])
def timed_stored(chapter: Chapter) -> None:
    """Time the sequential scan when its result is stored as in print; clustered, warm."""
    _compare(chapter, CLUSTERED, STORED, (SEQUENTIAL,))


def name(layout: str, state: str) -> str:
    """Of the experiment in the run record; `state` is of the caches, or STORED."""
    return f"{layout}, {state}"


def metric(selectivity: float) -> str:
    """Name of the time at a selectivity."""
    return f"at {selectivity:g}"


def _nothing(connection: psycopg.Connection) -> None:
    """What is done before a query in memory."""


def _compare(
    chapter: Chapter,
    layout: str,
    state: str,
    methods: Sequence[str],
    before: Callable[[psycopg.Connection], None] = _nothing,
) -> None:
    """Time the whole sweep under each method; `before` goes before every query, untimed."""
    statements = {
        metric(selectivity): queries.scan_of(chapter, TIMED, layout, selectivity)
        for selectivity in timed_at(chapter)
    }
    if state != STORED:
        statements = {at: queries.discarded(query) for at, query in statements.items()}

    def sweep(method: str, block: Block) -> dict[str, float]:
        with variants.session(chapter.server) as connection, variants.forced(connection, method):
            queries.store_in_memory(connection)
            return {at: seconds(connection, query, before) for at, query in statements.items()}

    compared = [Variant(method, partial(sweep, method)) for method in methods]
    if (layout, state) == (CLUSTERED, WARM):
        compared.append(Variant(AGAIN, compared[0].measure))
    units = dict.fromkeys(statements, "s")
    warmup = 0 if state == COLD else 1
    chapter.compare(name(layout, state), compared, units, warmup=warmup)


def seconds(
    connection: psycopg.Connection,
    statement: str,
    before: Callable[[psycopg.Connection], None] = _nothing,
) -> float:
    """Seconds of one execution; what it stored is dropped outside of them."""
    before(connection)
    with clock.stopwatch() as watch:
        connection.execute(statement)
    queries.destroy(connection)
    return watch.seconds


# ---- moving the planned switch-over

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RANDOM_PAGE, CPU = "random_page_cost", "all CPU costs"
COSTS = {
    RANDOM_PAGE: (RANDOM_PAGE,),
    CPU: ("cpu_tuple_cost", "cpu_index_tuple_cost", "cpu_operator_cost"),
}
MOST_COST = 1000.0


@experiment(claims=["lai-069"])
def tuned(chapter: Chapter) -> pd.DataFrame:
    """The planned switch-over of the timed relation as costs are changed.

    Columns: layout, knob, factor (of the server's own value), switch (selectivity).
    """
    rows = []
    with variants.session(chapter.server) as connection:
        for layout in ATTRIBUTES:
            for knob, settings in COSTS.items():
                own = {setting: cost_of(connection, setting) for setting in settings}
                for factor in FACTORS:
                    costs = {setting: factor * cost for setting, cost in own.items()}
                    at = planned_switch(chapter, connection, layout, TIMED, **costs)
                    rows.append((layout, knob, factor, at))
    return pd.DataFrame(rows, columns=["layout", "knob", "factor", "switch"])


def cost_of(connection: psycopg.Connection, setting: str) -> float:
    """The server's own value of one of the planner's costs."""
    return float(connection.execute(f"SHOW {setting}").fetchone()[0])


def fitting_cost(chapter: Chapter, layout: str, target: float) -> float:
    """The random_page_cost with which the planner would switch at `target` (a selectivity).

    By bisection of its logarithm; NaN if no value from 0.001 to 1 000 does it.
    """
    with variants.session(chapter.server) as connection:

        def switched(cost: float) -> float:
            return planned_switch(chapter, connection, layout, TIMED, random_page_cost=cost)

        low, high = 1 / MOST_COST, MOST_COST
        if not switched(high) <= target <= switched(low):
            return np.nan
        for _ in range(14):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if switched(middle) > target else (low, middle)
    return float(np.sqrt(low * high))


@experiment()
def fitting(chapter: Chapter, measured: pd.DataFrame) -> pd.DataFrame:
    """random_page_cost that would put the planned switch-over onto the measured one.

    `measured` has layout, cache and estimate (see `evidence.scans.best_switches`); to these come
    planned (the switch-over here) and cost (NaN where no value does it).
    """
    here = switches(chapter, TIMED)
    costs = [fitting_cost(chapter, row.layout, row.estimate) for row in measured.itertuples()]
    return measured.assign(planned=measured["layout"].map(here), cost=costs)
