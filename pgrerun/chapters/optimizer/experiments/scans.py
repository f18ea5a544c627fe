"""The first set of tests: sequential scan or index scan, planned and timed, by selectivity."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import psycopg

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.variants import (
    BITMAP,
    BUILDS,
    CONSTANT,
    FORBIDDEN,
    INDEX,
    MENDED,
    SEQUENTIAL,
    SESSION,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import callgrind, clock, cold_files, plans, sizes
from pgrerun.lab.postgres95 import Backend
from pgrerun.lab.testbed import Block, Experiment, Row, Testbed, experiment
from pgrerun.record import rows, statistics

FORCED = (SEQUENTIAL, INDEX, BITMAP)
AGAIN = f"{SEQUENTIAL}, again"  # the same a second time: what the machine's noise looks like
WARM, COLD, COUNTED = "warm", "cold", "in instructions"
# The scan that the sequential one is compared with: the one that the planner prefers otherwise.
RIVALS = {queries.CLUSTERED: INDEX, queries.SHUFFLED: BITMAP}


# ---- what is planned


def timed_at(bed: Testbed) -> list[float]:
    """The selectivities at which scans are timed: the report's first to its last, equal steps."""
    ends = queries.steps()
    return np.linspace(ends[0], ends[-1], bed.parameters.points).round(4).tolist()


@experiment(units=variants.ALTERNATIVE)
def planned_scans(
    bed: Testbed, relations: Sequence[str] = (queries.REPORT, queries.TIMED)
) -> Iterator[Row]:
    """Every plan of the sweep in relations of set 1, by layout, selectivity and forced method."""
    with variants.session(queries.load_scanned(bed, *relations)) as connection:
        for relation in relations:
            for row in planned_with(bed, connection, relation):
                yield {"relation": relation} | row


def planned_with(
    bed: Testbed,
    connection: psycopg.Connection,
    relation: str,
    layouts: Sequence[str] = (*RIVALS,),
    more: Sequence[float] = (),
) -> Iterator[Row]:
    """The same of one relation on a connection, for some layouts, and at more selectivities."""
    for layout in layouts:
        for selectivity in [
            *more,
            *(queries.steps() if relation == queries.REPORT else timed_at(bed)),
        ]:
            query = queries.selected(queries.scan_of(bed, relation, layout, selectivity))
            for row in variants.alternatives(connection, query, FORCED):
                yield {"layout": layout, "selectivity": selectivity} | row


@experiment(units={"cost": "", "pages": "pages"})
def scans_of_postgres95(bed: Testbed) -> Iterator[Row]:
    """The cost of the first set's index scan by Postgres95's cost function, by selectivity: with
    the report's correction of selectivities and without it; pages are the relation's.

    Asked for as printed, and with the upper bound alone: Postgres95 estimates a lower bound as if
    it were an upper one (`flag & 0` in its intgtsel).
    """
    for fault in (MENDED, CONSTANT):
        with Backend.of(BUILDS[fault]) as backend:
            queries.load_scanned_postgres95(backend)
            known = f"SELECT relpages FROM pg_class WHERE relname = '{queries.REPORT}'"
            pages = int(backend.run([known])[0][0]["relpages"])
            with backend.copied(" ".join([*backend.options, FORBIDDEN[SEQUENTIAL]])) as forced:
                for bounds, share in product(queries.BOUNDS, queries.steps()):
                    yield {
                        "fault": fault,
                        "bounds": bounds,
                        "selectivity": share,
                        "cost": forced.cost(queries.scan_of_postgres95(share, bounds)),
                        "pages": pages,
                    }


def switch(sequential: Callable[[int], bool], most: int) -> float:
    """The share of `most` tuples from which on a sequential scan is planned; 1 if none ever is.

    `sequential` tells it for a number of tuples, of which at least two are asked for.
    """
    first = 2 + bisect_left(range(2, most + 1), True, key=sequential)
    return min(first / most, 1.0)


def planned_switch(
    bed: Testbed,
    connection: psycopg.Connection,
    layout: str,
    relation: str = queries.REPORT,
    **settings: float,
) -> float:
    """The selectivity from which on the sequential scan is planned, under these cost settings."""
    tuples = queries.tuples(bed, relation)

    def sequential(count: int) -> bool:
        query = queries.selected(queries.scan_of(bed, relation, layout, count / tuples))
        return variants.method_of(plans.explain(connection, query)) == SEQUENTIAL

    with connection.transaction(force_rollback=True):
        for name, value in settings.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        return switch(sequential, tuples - 2)  # the query's lower bound leaves two keys out


@experiment(units={"selectivity": ""})
def switches(
    bed: Testbed, relations: Sequence[str] = (queries.REPORT, queries.TIMED)
) -> Iterator[Row]:
    """The planned switch-over of both layouts at the server's own settings."""
    with variants.session(queries.load_scanned(bed, *relations)) as connection:
        for relation in relations:
            for layout in queries.ATTRIBUTES:
                at = planned_switch(bed, connection, layout, relation)
                yield {"relation": relation, "layout": layout, "selectivity": at}


@experiment(units={"pages": "pages", "whole": "pages"})
def scanned_pages(bed: Testbed) -> Iterator[Row]:
    """Pages that each scan of the clustered attribute touches in the report's relation, its index
    included, and how many the relation has.
    """
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        whole = sizes.pages(connection, queries.REPORT)
        for selectivity in queries.steps():
            query = queries.selected(
                queries.scan_of(bed, queries.REPORT, queries.CLUSTERED, selectivity)
            )
            for method in FORCED:
                with variants.forced(connection, method):
                    pages = plans.explain(connection, query, execute=True).page_accesses
                yield {
                    "selectivity": selectivity,
                    "method": method,
                    "pages": pages,
                    "whole": whole,
                }


# ---- what is executed


@experiment(units={"instructions": "instructions"})
def scan_instructions(bed: Testbed) -> Iterator[Row]:
    """What each scan of the clustered attribute executes in the report's relation, at its first,
    middle and last selectivity; nothing is stored.
    """
    queries.load_scanned(bed, queries.REPORT)
    statements = {
        (selectivity, method): (
            SESSION
            | dict.fromkeys(variants.SCANS.values(), "off")
            | {variants.SCANS[method]: "on"},
            queries.discarded(queries.scan_of(bed, queries.REPORT, queries.CLUSTERED, selectivity)),
        )
        for selectivity in queries.steps()[::4]
        for method in (SEQUENTIAL, INDEX)
    }
    for (selectivity, method), count in callgrind.executed(bed.cluster(), statements).items():
        yield {"selectivity": selectivity, "method": method, "instructions": int(count)}


def seconds(
    connection: psycopg.Connection,
    statement: str,
    least: float = 0.0,
    before: Callable[[], object] = lambda: None,
) -> float:
    """Median seconds of executions, repeated until they took `least` seconds together.

    Before each goes `before`, and what it stored is dropped after it, both untimed.
    """

    def once() -> float:
        before()
        with clock.stopwatch() as watch:
            connection.execute(statement)
        if statement.startswith("CREATE"):
            queries.destroy(connection)
        return watch.seconds

    return float(np.median(clock.repeated(once, least)))


def warm_seconds(
    connection: psycopg.Connection, method: str, statement: str, least: float
) -> dict[str, float]:
    """The metric of a statement by a forced method; its first execution isn't timed."""
    with variants.forced(connection, method):
        seconds(connection, statement)
        return {"seconds": seconds(connection, statement, least)}


def cold_seconds(
    connection: psycopg.Connection, method: str, statement: str, forget: Callable[[], object]
) -> dict[str, float]:
    """The same where `forget` comes before it, once it was planned: which fills the caches of
    catalogs.
    """
    with variants.forced(connection, method):
        connection.execute(f"EXPLAIN {statement}")
        return {"seconds": seconds(connection, statement, before=forget)}


@experiment(units={"seconds": "s"})
def timed_scans(bed: Testbed) -> Iterator[Row]:
    """Time every forced scan with the relation in memory, and the clustered sequential one also
    with its result stored, as in print.

    The first execution isn't timed. All blocks count: what is made of the times is no ratio of two
    variants, whose looks could tell that more blocks change nothing.
    """
    server = queries.load_scanned(bed, queries.TIMED)
    compared = [
        {"layout": layout, "selectivity": selectivity, "method": method, "stored": stored}
        for layout in queries.ATTRIBUTES
        for selectivity in timed_at(bed)
        for method, stored in [
            *((method, False) for method in FORCED),
            *([(AGAIN, False), (SEQUENTIAL, True)] if layout == queries.CLUSTERED else []),
        ]
    ]
    with variants.session(server) as connection:
        queries.store_in_memory(connection)

        def scan(
            block: Block, layout: str, selectivity: float, method: str, stored: bool
        ) -> dict[str, float]:
            statement = queries.scan_of(bed, queries.TIMED, layout, selectivity)
            statement = statement if stored else queries.discarded(statement)
            method = SEQUENTIAL if method == AGAIN else method
            least = bed.parameters.milliseconds / 1000
            return warm_seconds(connection, method, statement, least)

        yield from bed.compare(scan, compared, warmup=0, positive=["seconds"], fixed=True)


@contextmanager
def forgetful(bed: Testbed) -> Iterator[tuple[psycopg.Connection, Callable[[], object]]]:
    """A session, and what throws the timed relation out of all caches beside it."""
    server = bed.cluster()
    server.extension("pg_buffercache")
    server.require("files")
    queries.load_scanned(bed, queries.TIMED)
    with variants.session(server) as connection:
        yield connection, partial(cold_files.forget_relation, server, connection, queries.TIMED)


@experiment(units={"seconds": "s"})
def cold_scans(bed: Testbed) -> Iterator[Row]:
    """Time every forced scan with the relation in neither the buffer pool nor the operating
    system's cache: once in a block, so in twice as many as where it is in memory.
    """
    with forgetful(bed) as (connection, forget):

        def scan(block: Block, layout: str, selectivity: float, method: str) -> dict[str, float]:
            statement = queries.discarded(queries.scan_of(bed, queries.TIMED, layout, selectivity))
            return cold_seconds(connection, method, statement, forget)

        compared = {"layout": [*queries.ATTRIBUTES], "selectivity": timed_at(bed), "method": FORCED}
        pairs = 2 * int(bed.parameters.pairs)
        yield from bed.compare(
            scan, compared, pairs=pairs, warmup=0, positive=["seconds"], fixed=True
        )


# ---- where the sequential scan should be taken


def measured(bed: Testbed, source: Experiment) -> pd.DataFrame:
    """The rows of an experiment of this chapter that count; empty where it was set aside."""
    return rows.counted(rows.frame(bed.rows_of(source.name), source.units))


def taken(bed: Testbed) -> pd.DataFrame:
    """Every scan that was timed and not stored: layout, cache, selectivity, method, block, seconds,
    and how a row that is made of it came about. CannotMeasure where there is none.
    """
    found = {WARM: measured(bed, timed_scans), COLD: measured(bed, cold_scans)}
    if all(part.empty for part in found.values()):
        raise CannotMeasure("times of scans", "it takes scans that were timed here")
    parts = [part.assign(cache=cache) for cache, part in found.items() if len(part)]
    every = pd.concat(parts, ignore_index=True).fillna({"stored": False})
    every["comparison"] = (every["cache"] == COLD).astype(int)
    every["seconds"] = every["seconds"].astype(float)
    return every[~every["stored"].astype(bool)]


def by_block(found: pd.DataFrame, *more: str) -> Iterator[tuple[Row, "pd.Series[float]"]]:
    """Seconds by method and selectivity, for each layout, state of the caches, block, and `more`,
    with what a row that is made of them takes over, the planned looks among it.
    """
    same = ["layout", "cache", *more, "comparison", "block", "looks", "disk"]
    for key, part in found.groupby(same, sort=False):
        yield dict(zip(same, key)), part.set_index(["method", "selectivity"])["seconds"]


def asked(bed: Testbed) -> Row:
    """What decides whether times say something: the size of the relation, and how long is timed."""
    return {"tuples": bed.parameters.tuples, "milliseconds": bed.parameters.milliseconds}


def crossing(selectivity: np.ndarray, difference: np.ndarray) -> float:
    """Where a scan's time begins to exceed the sequential scan's, on a line through differences.

    1 where it never does, 0 where it always has. The line is Theil and Sen's, the median of all
    slopes, so that a few disturbed times don't pull it.
    """
    one, other = np.triu_indices(len(selectivity), 1)
    rises = (difference[other] - difference[one]) / (selectivity[other] - selectivity[one])
    slope = np.median(rises)
    start = np.median(difference - slope * selectivity)
    if slope <= 0:
        return 1.0 if start + slope < 0 else 0.0
    return float(np.clip(-start / slope, 0, 1))


@experiment(units={"selectivity": ""}, after=["timed_scans", "cold_scans", "scan_instructions"])
def crossings(bed: Testbed) -> Iterator[Row]:
    """The selectivity from which on the sequential scan is the faster one, in each block.

    Its rival is the index scan where the attribute is clustered, else the bitmap scan. `cache` is
    "in instructions" where they were counted instead, in the report's relation.
    """
    for same, seconds_of in by_block(taken(bed)):
        at = _between(seconds_of[RIVALS[same["layout"]]], seconds_of[SEQUENTIAL])
        yield same | asked(bed) | {"selectivity": at}
    counted = measured(bed, scan_instructions)
    if len(counted):
        by = counted.set_index(["method", "selectivity"])["instructions"].astype(float)
        at = _between(by[INDEX], by[SEQUENTIAL])
        yield {"layout": queries.CLUSTERED, "cache": COUNTED, "selectivity": at}


def _between(rival: "pd.Series[float]", sequential: "pd.Series[float]") -> float:
    difference = (rival - sequential).sort_index()
    return crossing(difference.index.to_numpy(float), difference.to_numpy(float))


@experiment(
    units={"planned": "s", "fastest": "s", "planned_scan": "text", "fastest_scan": "text"},
    after=["planned_scans", "timed_scans", "cold_scans"],
)
def price_of_choice(bed: Testbed) -> Iterator[Row]:
    """Seconds of the scan that is planned and of the one with the least median, at each
    selectivity and in each block.
    """
    plans_of = measured(bed, planned_scans)
    plans_of = plans_of[plans_of["chosen"].astype(bool) & (plans_of["relation"] == queries.TIMED)]
    planned = plans_of.set_index(["layout", "selectivity"])["method"]
    found = taken(bed)
    found = found[found["method"].isin(FORCED)]
    medians = found.groupby(["layout", "cache", "selectivity", "method"])["seconds"].median()
    for same, seconds_of in by_block(found, "selectivity"):
        at = same["selectivity"]
        own = planned[same["layout"], at]
        best = medians[same["layout"], same["cache"], at].idxmin()
        yield {
            **same,
            **asked(bed),
            "planned": seconds_of[own, at],
            "fastest": seconds_of[best, at],
            "planned_scan": own,
            "fastest_scan": best,
        }


# ---- moving the planned switch-over

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RANDOM_PAGE, CPU = "random_page_cost", "all CPU costs"
COSTS = {
    RANDOM_PAGE: (RANDOM_PAGE,),
    CPU: ("cpu_tuple_cost", "cpu_index_tuple_cost", "cpu_operator_cost"),
}
MOST_COST = 1000.0


@experiment(units={"selectivity": ""})
def moved_switches(bed: Testbed) -> Iterator[Row]:
    """The planned switch-over of the timed relation as costs are multiplied by a factor."""
    with variants.session(queries.load_scanned(bed, queries.TIMED)) as connection:
        for layout in queries.ATTRIBUTES:
            for knob, settings in COSTS.items():
                own = {setting: cost_of(connection, setting) for setting in settings}
                for factor in FACTORS:
                    costs = {setting: factor * cost for setting, cost in own.items()}
                    at = planned_switch(bed, connection, layout, queries.TIMED, **costs)
                    yield {"layout": layout, "knob": knob, "factor": factor, "selectivity": at}


def cost_of(connection: psycopg.Connection, setting: str) -> float:
    """The server's own value of one of the planner's costs."""
    return float(connection.execute(f"SHOW {setting}").fetchone()[0])


def fitting_cost(
    bed: Testbed, connection: psycopg.Connection, layout: str, target: float
) -> float | None:
    """The least random_page_cost with which the planner would switch at `target` (a selectivity).

    None if no value from 0.001 to 1 000 does it.
    """
    costs = np.geomspace(1 / MOST_COST, MOST_COST, 2**14)

    def switched(cost: float) -> float:
        return planned_switch(bed, connection, layout, queries.TIMED, random_page_cost=cost)

    if not switched(costs[-1]) <= target <= switched(costs[0]):
        return None
    # the dearer a page, the earlier the switch
    return float(costs[bisect_left(costs, -target, key=lambda cost: -switched(cost))])


@experiment(units={"own": "", "cost": "", "least": "", "most": ""}, after=["crossings"])
def fitting_costs(bed: Testbed) -> Iterator[Row]:
    """The random_page_cost that would put the planned switch-over onto the measured one, with those
    that fit the ends of its interval, and the server's own. None where no cost does it.
    """
    found = measured(bed, crossings)
    if found.empty:
        raise CannotMeasure("times of scans", "it takes scans that were timed here")
    with variants.session(queries.load_scanned(bed, queries.TIMED)) as connection:
        own = cost_of(connection, RANDOM_PAGE)
        for (layout, cache), part in found[found["cache"] != COUNTED].groupby(["layout", "cache"]):
            sample = statistics.Sample(
                part["selectivity"].astype(float), float(part["alpha"].min())
            )
            best = statistics.median(sample, seed=bed.parameters.seed)
            cost, most, least = (
                fitting_cost(bed, connection, layout, at)
                for at in (best.estimate, best.low, best.high)
            )
            yield {
                "layout": layout,
                "cache": cache,
                "own": own,
                "cost": cost,
                "least": least,
                "most": most,
            }
