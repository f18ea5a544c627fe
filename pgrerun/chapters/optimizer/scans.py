"""The first set of tests: sequential scan or index scan, planned and measured, over all selectivities."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from statistics import median

import numpy as np
import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.queries import (
    BITMAP, INDEX, INDEX_ONLY, SCANS, SEQUENTIAL, forced, large_tuples, load_scanned, method_of, range_of, session, steps, stored,
)  # fmt: skip
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, pages, plans

REPORT, TIMED = "tenk1", "scanned"  # relations: of the report's size, of the size that the parameter says
CLUSTERED, SHUFFLED = "clustered", "not clustered"
ATTRIBUTES = {CLUSTERED: "unique2", SHUFFLED: "unique1"}
WARM, COLD = "warm", "cold"
FORCED = (SEQUENTIAL, INDEX, BITMAP)
COUNTED = "counted"


def prepared(chapter: Chapter) -> None:
    """Load both relations."""
    load_scanned(chapter.server, REPORT, large_tuples())
    load_scanned(chapter.server, TIMED, chapter.parameters.tuples)


def tuples(chapter: Chapter, relation: str) -> int:
    """Tuples of one of the two relations."""
    return large_tuples() if relation == REPORT else chapter.parameters.tuples


# ---- what is planned


def select(chapter: Chapter, relation: str, layout: str, selectivity: float, what: str = "*") -> str:
    """The query of Figure 2.4 on a relation, by the attribute that it is, or isn't, clustered on."""
    return f"SELECT {what} FROM {relation} WHERE {range_of(tuples(chapter, relation), selectivity, ATTRIBUTES[layout])}"


def planned(chapter: Chapter, relation: str = REPORT) -> pd.DataFrame:
    """Every plan of the sweep: columns layout, selectivity, method, cost, rows, chosen (whether the planner takes it when free to)."""
    with session(chapter.server) as connection:
        return planned_with(chapter, connection, relation, list(ATTRIBUTES))


def planned_with(chapter: Chapter, connection: psycopg.Connection, relation: str, layouts: list[str]) -> pd.DataFrame:
    """The same on a connection, for some layouts."""
    found = []
    for layout in layouts:
        for selectivity in steps():
            query = select(chapter, relation, layout, selectivity)
            free = method_of(plans.explain(connection, query))
            for method in FORCED:
                with forced(connection, method):
                    plan = plans.explain(connection, query)
                found.append((layout, selectivity, method, plan.total_cost, plan.rows_estimated, method == free == method_of(plan)))
    return pd.DataFrame(found, columns=["layout", "selectivity", "method", "cost", "rows", "chosen"])


def choices(found: pd.DataFrame) -> pd.DataFrame:
    """The chosen method and the costs of all, a row per layout and selectivity."""
    costs = found.pivot(index=["layout", "selectivity"], columns="method", values="cost")[list(FORCED)]
    chosen = found[found["chosen"]].set_index(["layout", "selectivity"])["method"].rename("planned")
    return chosen.to_frame().join(costs).reset_index()


def switch(explained: Callable[[int], str], most: int) -> float:
    """The share of `most` tuples from which on a sequential scan is planned, by bisection; 1 if none ever is.

    `explained` gives the planned method for a number of tuples.
    """
    low, high = 1, most
    if explained(high) != SEQUENTIAL:
        return 1.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if explained(middle) == SEQUENTIAL else (middle, high)
    return high / most


def planned_switch(chapter: Chapter, connection: psycopg.Connection, layout: str, relation: str = REPORT, **settings: float) -> float:
    """The selectivity from which on the planner takes the sequential scan, under these settings of its costs."""
    most = tuples(chapter, relation) - 2  # the query's lower bound leaves two keys out

    def explained(count: int) -> str:
        return method_of(plans.explain(connection, select(chapter, relation, layout, count / tuples(chapter, relation))))

    with connection.transaction(force_rollback=True):
        for name, value in settings.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        return switch(explained, most)


def switches(chapter: Chapter, relation: str = REPORT) -> dict[str, float]:
    """The planned switch-over of both layouts at the server's own settings."""
    with session(chapter.server) as connection:
        return {layout: planned_switch(chapter, connection, layout, relation) for layout in ATTRIBUTES}


# ---- what is measured


def timed(chapter: Chapter) -> None:
    """Time the stored query under every forced scan, with the relation in memory."""
    for layout in ATTRIBUTES:
        _compare(chapter, layout, WARM, lambda connection: None)


def timed_cold(chapter: Chapter) -> None:
    """The same with the relation in neither the buffer pool nor the operating system's cache."""
    server = chapter.cluster()
    server.extension("pg_buffercache")
    server.require("files")
    for layout in ATTRIBUTES:
        _compare(chapter, layout, COLD, partial(_chill, server))


def timed_counted(chapter: Chapter) -> None:
    """Count instead of storing, and so with an index-only scan as well; clustered, warm."""
    arms = [Arm(method, partial(_sweep, chapter, method, CLUSTERED, lambda connection: None, counted=True)) for method in SCANS]
    chapter.compare(COUNTED, arms, _units())


def name(layout: str, cache: str) -> str:
    """Of the experiment in the run record."""
    return f"{layout}, {cache}"


def _units() -> dict[str, str]:
    return {metric(selectivity): "s" for selectivity in steps()}


def metric(selectivity: float) -> str:
    """Name of the time at a selectivity."""
    return f"at {selectivity:g}"


def _compare(chapter: Chapter, layout: str, cache: str, before: Callable[[psycopg.Connection], None]) -> None:
    repeats = 1 if cache == COLD else 3
    arms = [Arm(method, partial(_sweep, chapter, method, layout, before, repeats=repeats)) for method in FORCED]
    chapter.compare(name(layout, cache), arms, _units())


def _sweep(
    chapter: Chapter, method: str, layout: str, before: Callable[[psycopg.Connection], None], block: Block, repeats: int = 3, counted: bool = False
) -> dict[str, float]:
    """Time of each selectivity's query under one forced scan: the median of a few executions."""
    times = {}
    with session(chapter.server) as connection, forced(connection, method):
        for selectivity in steps():
            query = select(chapter, TIMED, layout, selectivity, "count(*)" if counted else "*")
            times[metric(selectivity)] = median(_time(connection, query if counted else stored(query), before) for _ in range(repeats))
    return times


def _time(connection: psycopg.Connection, statement: str, before: Callable[[psycopg.Connection], None]) -> float:
    """Seconds of one execution; its result is dropped outside of them."""
    before(connection)
    with clock.stopwatch() as watch:
        connection.execute(statement)
    connection.execute("DROP TABLE IF EXISTS pg_temp.temp1")
    return watch.seconds


def _chill(server, connection: psycopg.Connection) -> None:
    """Put the timed relation and its indices out of both caches."""
    pages.evict_all(connection)
    files = connection.execute(
        "SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = %s::regclass OR oid IN"
        " (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass)", (TIMED, TIMED),
    )  # fmt: skip
    for (path,) in files.fetchall():
        for part in sorted(server.data_directory.glob(f"{path}*")):
            file = os.open(part, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def times(chapter: Chapter, layout: str, cache: str) -> pd.DataFrame | None:
    """This run's times: a row per block, columns (method, selectivity); None if it did not run."""
    experiment = layout if layout == COUNTED else name(layout, cache)
    tables = {selectivity: chapter.table(experiment, metric(selectivity)) for selectivity in steps()}
    if tables[steps()[0]].empty:
        return None
    frame = pd.concat(tables, axis=1).swaplevel(axis=1)
    return frame.sort_index(axis=1)


def crossing(selectivity: np.ndarray, difference: np.ndarray) -> float:
    """Where a scan's time begins to exceed the sequential scan's, by a parabola through the differences.

    1 where it never does, 0 where it always has.
    """
    curve = np.polynomial.Polynomial.fit(selectivity, difference, 2)
    fine = np.linspace(0, 1, 1001)
    above = fine[curve(fine) > 0]
    return float(above.min()) if above.size else 1.0


def measured_switch(chapter: Chapter, layout: str, cache: str, method: str = INDEX) -> statistics.Interval | None:
    """The selectivity from which on the sequential scan was faster than `method`, with its interval over the blocks."""
    found = times(chapter, layout, cache)
    if found is None:
        return None
    at = np.array(steps())
    each = [crossing(at, (row[method] - row[SEQUENTIAL]).to_numpy()) for _, row in found.iterrows()]
    return statistics.median(each, seed=chapter.parameters.seed)
