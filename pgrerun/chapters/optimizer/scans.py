"""The first set of tests: sequential scan or index scan, planned and measured, over all selectivities."""

import os
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.queries import (
    BITMAP, INDEX, SCANS, SEQUENTIAL, counted, destroy, forced, large_tuples, load_scanned, method_of, scan, selected, session, steps, store_in_memory,
)  # fmt: skip
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, pages, plans

REPORT, TIMED = "tenk1", "scanned"  # relations: of the report's size, of the size that the parameter says
CLUSTERED, SHUFFLED = "clustered", "not clustered"
ATTRIBUTES = {CLUSTERED: "unique2", SHUFFLED: "unique1"}
WARM, COLD = "warm", "cold"
FORCED = (SEQUENTIAL, INDEX, BITMAP)
AGAIN = f"{SEQUENTIAL}, again"  # the same a second time: what the machine's noise looks like
COUNTED = "counted"


def prepared(chapter: Chapter) -> None:
    """Load both relations."""
    load_scanned(chapter.server, REPORT, large_tuples())
    load_scanned(chapter.server, TIMED, chapter.parameters.tuples)


def tuples(chapter: Chapter, relation: str) -> int:
    """Tuples of one of the two relations."""
    return large_tuples() if relation == REPORT else chapter.parameters.tuples


# ---- what is planned


def query(chapter: Chapter, relation: str, layout: str, selectivity: float) -> str:
    """The query of Figure 2.4 on a relation, by the attribute that it is, or isn't, clustered on."""
    return scan(relation, tuples(chapter, relation), selectivity, ATTRIBUTES[layout])


def select(chapter: Chapter, relation: str, layout: str, selectivity: float) -> str:
    """The same without storing."""
    return selected(query(chapter, relation, layout, selectivity))


def timed_at(chapter: Chapter) -> list[float]:
    """The selectivities at which scans are timed: from the first to the last of the report's, in equal steps."""
    return np.linspace(steps()[0], steps()[-1], chapter.parameters.points).round(4).tolist()


def at(chapter: Chapter, relation: str) -> list[float]:
    """The selectivities that are looked at in one of the two relations."""
    return steps() if relation == REPORT else timed_at(chapter)


def planned(chapter: Chapter, relation: str = REPORT) -> pd.DataFrame:
    """Every plan of the sweep: columns layout, selectivity, method, cost, rows, chosen (when the planner is free), obeyed (whether it could be forced)."""
    with session(chapter.server) as connection:
        return planned_with(chapter, connection, relation, list(ATTRIBUTES))


def planned_with(chapter: Chapter, connection: psycopg.Connection, relation: str, layouts: list[str]) -> pd.DataFrame:
    """The same on a connection, for some layouts."""
    found = []
    for layout in layouts:
        for selectivity in at(chapter, relation):
            statement = select(chapter, relation, layout, selectivity)
            free = method_of(plans.explain(connection, statement))
            for method in FORCED:
                with forced(connection, method):
                    plan = plans.explain(connection, statement)
                obeyed = method_of(plan) == method
                found.append((layout, selectivity, method, plan.total_cost, plan.rows_estimated, method == free, obeyed))
    return pd.DataFrame(found, columns=["layout", "selectivity", "method", "cost", "rows", "chosen", "obeyed"])


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
    arms = [Arm(method, partial(_sweep, chapter, method, CLUSTERED, lambda connection: None, counted)) for method in SCANS]
    chapter.compare(COUNTED, arms, _units(chapter))


def name(layout: str, cache: str) -> str:
    """Of the experiment in the run record."""
    return f"{layout}, {cache}"


def _units(chapter: Chapter) -> dict[str, str]:
    return {metric(selectivity): "s" for selectivity in timed_at(chapter)}


def metric(selectivity: float) -> str:
    """Name of the time at a selectivity."""
    return f"at {selectivity:g}"


def _compare(chapter: Chapter, layout: str, cache: str, before: Callable[[psycopg.Connection], None]) -> None:
    arms = [Arm(method, partial(_sweep, chapter, method, layout, before, str)) for method in FORCED]
    if (layout, cache) == (CLUSTERED, WARM):
        arms.append(Arm(AGAIN, arms[0].measure))
    chapter.compare(name(layout, cache), arms, _units(chapter), warmup=0 if cache == COLD else 1)


def _sweep(
    chapter: Chapter, method: str, layout: str, before: Callable[[psycopg.Connection], None], how: Callable[[str], str], block: Block
) -> dict[str, float]:
    """Time of each selectivity's query under one forced scan; `how` makes of it the statement that is run."""
    times = {}
    with session(chapter.server) as connection, forced(connection, method):
        store_in_memory(connection)
        for selectivity in timed_at(chapter):
            times[metric(selectivity)] = _time(connection, how(query(chapter, TIMED, layout, selectivity)), before)
    return times


def _time(connection: psycopg.Connection, statement: str, before: Callable[[psycopg.Connection], None]) -> float:
    """Seconds of one execution; its result is dropped outside of them."""
    before(connection)
    with clock.stopwatch() as watch:
        connection.execute(statement)
    destroy(connection)
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
    tables = {selectivity: chapter.table(experiment, metric(selectivity)).drop(columns=AGAIN, errors="ignore") for selectivity in timed_at(chapter)}
    if tables[timed_at(chapter)[0]].empty:
        return None
    frame = pd.concat(tables, axis=1).swaplevel(axis=1)
    return frame.sort_index(axis=1)


def twins(chapter: Chapter) -> tuple[pd.Series, pd.Series] | None:
    """Time of the whole sweep by sequential scan, and by the same again, block by block."""
    tables = [chapter.table(name(CLUSTERED, WARM), metric(selectivity)) for selectivity in timed_at(chapter)]
    if tables[0].empty:
        return None
    total = sum(tables[1:], tables[0])
    return total[SEQUENTIAL], total[AGAIN]


def crossing(selectivity: np.ndarray, difference: np.ndarray) -> float:
    """Where a scan's time begins to exceed the sequential scan's, on a straight line through the differences.

    1 where it never does, 0 where it always has. The line is Theil and Sen's, the median of all slopes, so that a few
    disturbed times don't pull it.
    """
    one, other = np.triu_indices(len(selectivity), 1)
    slope = np.median((difference[other] - difference[one]) / (selectivity[other] - selectivity[one]))
    start = np.median(difference - slope * selectivity)
    if slope <= 0:
        return 1.0 if start + slope < 0 else 0.0
    return float(np.clip(-start / slope, 0, 1))


def measured_switch(chapter: Chapter, layout: str, cache: str, method: str = INDEX) -> statistics.Interval | None:
    """The selectivity from which on the sequential scan was faster than `method`, with its interval over the blocks."""
    found = times(chapter, layout, cache)
    if found is None:
        return None
    where = np.array(timed_at(chapter))
    each = [crossing(where, (row[method] - row[SEQUENTIAL]).to_numpy()) for _, row in found.iterrows()]
    return statistics.median(each, seed=chapter.parameters.seed)


def distance(x: statistics.Interval | float, point: float) -> statistics.Interval:
    """How far a measured value lies from a printed one, in either direction."""
    if not isinstance(x, statistics.Interval):
        return statistics.exact(abs(x - point))
    ends = sorted((abs(x.low - point), abs(x.high - point)))
    least = 0.0 if x.low <= point <= x.high else ends[0]
    return statistics.Interval(abs(x.estimate - point), least, ends[1], x.n, x.confidence, x.method)


def best_switch(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """Distance of the measured best switch from the printed one, clustered, in each state of the caches that was timed."""
    printed = published.cell("optimizer_said", "best_switch", "value")
    found = {cache: measured_switch(chapter, CLUSTERED, cache) for cache in (WARM, COLD)}
    return {cache: distance(interval, printed) for cache, interval in found.items() if interval is not None} or None


def regret(chapter: Chapter, found: pd.DataFrame, layout: str, cache: str) -> pd.DataFrame | None:
    """What the planner's choices cost: selectivity, planned, fastest (by median), ratio of their times with low and high.

    `found` are the plans of the timed relation.
    """
    measured = times(chapter, layout, cache)
    if measured is None:
        return None
    chosen, rows = found[found["chosen"] & (found["layout"] == layout)].set_index("selectivity")["method"], []
    for selectivity in timed_at(chapter):
        here = measured.xs(selectivity, axis=1, level=1)
        fastest = here.median().idxmin()
        ratio = statistics.ratio(here[chosen[selectivity]], here[fastest], seed=chapter.parameters.seed)
        rows.append((selectivity, chosen[selectivity], fastest, ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(rows, columns=["selectivity", "planned", "fastest", "ratio", "low", "high"])


# ---- moving the planned switch-over

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CPU_COSTS = ("cpu_tuple_cost", "cpu_index_tuple_cost", "cpu_operator_cost")
RANDOM_PAGE, CPU = "random_page_cost", "all CPU costs"


def tuned(chapter: Chapter) -> pd.DataFrame:
    """The planned switch-over of the timed relation as costs are changed: layout, knob, factor (of the server's own value), switch."""
    found = []
    with session(chapter.server) as connection:
        own = _costs(connection)
        for layout in ATTRIBUTES:
            for knob, names in ((RANDOM_PAGE, (RANDOM_PAGE,)), (CPU, CPU_COSTS)):
                for factor in FACTORS:
                    settings = {name: factor * own[name] for name in names}
                    found.append((layout, knob, factor, planned_switch(chapter, connection, layout, TIMED, **settings)))
    return pd.DataFrame(found, columns=["layout", "knob", "factor", "switch"])


def _costs(connection: psycopg.Connection) -> dict[str, float]:
    return {name: float(connection.execute(f"SHOW {name}").fetchone()[0]) for name in (RANDOM_PAGE, *CPU_COSTS)}


MOST_COST = 1000.0


def fitting_cost(chapter: Chapter, layout: str, target: float) -> float | None:
    """The random_page_cost with which the planner would switch at `target`, by bisection of its logarithm; None if none from 0.001 to 1 000 does."""
    with session(chapter.server) as connection:
        switched = lambda cost: planned_switch(chapter, connection, layout, TIMED, random_page_cost=cost)  # noqa: E731
        low, high = 1 / MOST_COST, MOST_COST
        if not switched(high) <= target <= switched(low):
            return None
        for _ in range(14):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if switched(middle) > target else (low, middle)
    return float(np.sqrt(low * high))


def fitting(chapter: Chapter) -> pd.DataFrame:
    """random_page_cost that would put the planned switch-over onto the measured one: layout, cache, measured, low, high, planned, cost.

    `cost` is missing where no value does it. Clustered, the index scan is compared, otherwise the bitmap scan, which the planner prefers there.
    """
    planned_here, found = switches(chapter, TIMED), []
    for layout in ATTRIBUTES:
        for cache in (WARM, COLD):
            measured = measured_switch(chapter, layout, cache, INDEX if layout == CLUSTERED else BITMAP)
            if measured is not None:
                cost = fitting_cost(chapter, layout, measured.estimate)
                found.append((layout, cache, measured.estimate, measured.low, measured.high, planned_here[layout], cost))
    return pd.DataFrame(found, columns=["layout", "cache", "measured", "low", "high", "planned", "cost"])


def tuning_facts(chapter: Chapter, moved: pd.DataFrame, fitted: pd.DataFrame) -> dict[str, bool]:
    """Whether cost settings move the clustered switch-over, and to where it should be."""
    rows = moved[moved["layout"] == CLUSTERED]
    spread = rows.groupby("knob")["switch"].agg(lambda s: s.max() - s.min())
    mine = fitted[fitted["layout"] == CLUSTERED]
    reached = [bool(((rows["switch"] >= one.low) & (rows["switch"] <= one.high)).any() or pd.notna(one.cost)) for one in mine.itertuples()]
    return {
        "random_page_cost moves the switch-over": bool(spread[RANDOM_PAGE] > 0.01),
        "the ratio of CPU to I/O costs moves it": bool(spread[CPU] > 0.01),
        "some setting puts it where the measured one is": all(reached),
    }


# ---- what a scan's cost and time consist of


def linear_facts(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the calculated cost of the clustered index scan is a straight line over selectivity."""
    cost = found[(found["layout"] == CLUSTERED) & (found["method"] == INDEX)].sort_values("selectivity")["cost"]
    rises = cost.diff().dropna()
    return {"the cost rises with every tenth": bool((rises > 0).all()), "by the same amount, to a fiftieth": bool(rises.max() / rises.min() <= 1.02)}


def scanned_pages(chapter: Chapter) -> pd.DataFrame:
    """Pages that each scan of the clustered attribute touches in the relation of the report's size: selectivity, a column per method."""
    rows = []
    with session(chapter.server) as connection:
        for selectivity in steps():
            row = {"selectivity": selectivity}
            for method in FORCED:
                with forced(connection, method):
                    buffers = plans.explain(connection, select(chapter, REPORT, CLUSTERED, selectivity), execute=True).buffers
                row[method] = buffers["shared_hit"] + buffers["shared_read"]
            rows.append(row)
    return pd.DataFrame(rows)


def storing_facts(chapter: Chapter, found: pd.DataFrame, touched: pd.DataFrame) -> dict[str, bool] | None:
    """Whether a sequential scan costs the same at every selectivity, and whether it is the result that takes the time."""
    stored_times, counted_times = times(chapter, CLUSTERED, WARM), times(chapter, COUNTED, "")
    if stored_times is None or counted_times is None:
        return None
    ends = steps()[-1], steps()[0]
    grown = lambda t: statistics.ratio(t[SEQUENTIAL, ends[0]], t[SEQUENTIAL, ends[1]], seed=chapter.parameters.seed)  # noqa: E731
    stored_growth, counted_growth = grown(stored_times), grown(counted_times)
    costs = found[found["method"] == SEQUENTIAL].groupby("layout")["cost"].nunique()
    return {
        "its calculated cost is the same at every selectivity": bool((costs == 1).all()),
        "it touches the same pages at every selectivity": bool(touched[SEQUENTIAL].nunique() == 1),
        "it takes longer the more tuples are stored": bool(stored_growth.low > 1),
        "without storing them its time grows less": bool(counted_growth.high < stored_growth.low),
    }
