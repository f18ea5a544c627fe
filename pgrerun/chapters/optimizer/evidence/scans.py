"""The first set: where a scan should be left for another, and what planning otherwise costs."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import queries
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.experiments.scans import AGAIN, COUNTED, FORCED
from pgrerun.chapters.optimizer.variants import (
    ATTRIBUTES,
    BITMAP,
    CLUSTERED,
    COLD,
    INDEX,
    INDEX_ONLY,
    SEQUENTIAL,
    SHUFFLED,
    WARM,
)
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval

# The scan that the sequential one is compared with: the one that the planner prefers otherwise.
RIVALS = {CLUSTERED: INDEX, SHUFFLED: BITMAP}


# ---- what is planned


def choices(planned: pd.DataFrame) -> pd.DataFrame:
    """The planned method and the costs of all, a row per layout and selectivity."""
    by = ["layout", "selectivity"]
    costs = planned.pivot(index=by, columns="method", values="cost")[list(FORCED)]
    chosen = planned[planned["chosen"]].set_index(by)["method"].rename("planned")
    return chosen.to_frame().join(costs).reset_index()


def linear_facts(planned: pd.DataFrame) -> dict[str, bool]:
    """Whether the calculated cost of the clustered index scan is a line over selectivity."""
    rows = planned[(planned["layout"] == CLUSTERED) & (planned["method"] == INDEX)]
    rises = rows.sort_values("selectivity")["cost"].diff().dropna()
    return {
        "the cost rises with every tenth": (rises > 0).all(),
        "by the same amount, to a fiftieth": rises.max() / rises.min() <= 1.02,
    }


def distance(x: Interval | float, point: float) -> Interval:
    """How far a value lies from a printed one, in either direction."""
    if not isinstance(x, Interval):
        return statistics.exact(abs(x - point))
    ends = sorted((abs(x.low - point), abs(x.high - point)))
    least = 0.0 if x.low <= point <= x.high else ends[0]
    return Interval(abs(x.estimate - point), least, ends[1], x.n, x.confidence, x.method)


def planned_distance(switches: dict[str, float]) -> Interval:
    """Distance of the planned switch-over from the printed one, clustered, in selectivity."""
    return distance(switches[CLUSTERED], printed.cell("optimizer_said", "revised_switch", "value"))


# ---- what was timed


def times(chapter: Chapter, layout: str, state: str) -> pd.DataFrame:
    """This run's seconds: a row per block, columns (method, selectivity)."""
    name = scans.name(layout, state)
    tables = {
        selectivity: chapter.table(name, scans.metric(selectivity))
        for selectivity in scans.timed_at(chapter)
    }
    return pd.concat(tables, axis=1).swaplevel(axis=1).sort_index(axis=1)


def sweeps(chapter: Chapter) -> dict[tuple[str, str], pd.DataFrame]:
    """`times` by layout and state of the caches, as far as they were measured.

    Whoever asks is left at once (see `Chapter.table`) where nothing was.
    """
    keys = [(layout, cache) for layout in ATTRIBUTES for cache in (WARM, COLD)]
    measured = {key: chapter.show(times, *key) for key in keys}
    kept = {key: found for key, found in measured.items() if found is not None and len(found)}
    return kept or {keys[0]: times(chapter, *keys[0])}


def noise_floor(chapter: Chapter) -> statistics.NoiseFloor:
    """From the whole sweep by sequential scan, and by the same again, block by block."""
    seconds = times(chapter, CLUSTERED, WARM)
    return statistics.noise_floor(seconds[SEQUENTIAL].sum(axis=1), seconds[AGAIN].sum(axis=1))


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


def crossings(chapter: Chapter, seconds: pd.DataFrame, method: str) -> Interval:
    """The selectivity from which on the sequential scan was faster than `method`."""
    at = np.array(scans.timed_at(chapter))
    differences = (seconds[method] - seconds[SEQUENTIAL]).to_numpy()
    each = [crossing(at, difference) for difference in differences]
    return statistics.median(each, seed=chapter.parameters.seed)


def best_switches(chapter: Chapter) -> pd.DataFrame:
    """Where the sequential scan became faster than its rival, of what was measured.

    Columns: layout, cache, estimate, low, high (selectivities), interval (the same).
    """
    rows = []
    for (layout, cache), seconds in sweeps(chapter).items():
        best = crossings(chapter, seconds, RIVALS[layout])
        rows.append((layout, cache, best.estimate, best.low, best.high, best))
    return pd.DataFrame(rows, columns=["layout", "cache", "estimate", "low", "high", "interval"])


def best_distance(best: pd.DataFrame) -> dict[str, Interval]:
    """Distance of the clustered best switch-over from the printed one, by state of the caches."""
    in_print = printed.cell("optimizer_said", "best_switch", "value")
    mine = best[best["layout"] == CLUSTERED].set_index("cache")["interval"]
    return {cache: distance(interval, in_print) for cache, interval in mine.items()}


def regret(chapter: Chapter, planned: pd.DataFrame) -> pd.DataFrame:
    """What the planner's choices cost; `planned` are the plans of the timed relation.

    Columns: layout, cache, selectivity, planned, fastest (by median), ratio of their times, low,
    high.
    """
    chosen = planned[planned["chosen"]].set_index(["layout", "selectivity"])["method"]
    rows = []
    for (layout, cache), seconds in sweeps(chapter).items():
        for selectivity in scans.timed_at(chapter):
            at = seconds.xs(selectivity, axis=1, level=1)[list(FORCED)]
            own, fastest = chosen[layout, selectivity], at.median().idxmin()
            ratio = statistics.ratio(at[own], at[fastest], seed=chapter.parameters.seed)
            key = (layout, cache, selectivity, own, fastest)
            rows.append((*key, ratio.estimate, ratio.low, ratio.high))
    columns = ["layout", "cache", "selectivity", "planned", "fastest", "ratio", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def tuning_facts(tuned: pd.DataFrame, fitted: pd.DataFrame) -> dict[str, bool]:
    """Whether cost settings move the clustered switch-over, and to where it should be."""
    by_knob = tuned[tuned["layout"] == CLUSTERED].groupby("knob")["switch"]
    spread = by_knob.max() - by_knob.min()
    switches = tuned.loc[tuned["layout"] == CLUSTERED, "switch"]
    reached = [
        switches.between(row.low, row.high).any() or pd.notna(row.cost)
        for row in fitted[fitted["layout"] == CLUSTERED].itertuples()
    ]
    return {
        "random_page_cost moves the switch-over": spread[scans.RANDOM_PAGE] > 0.01,
        "the ratio of CPU to I/O costs moves it": spread[scans.CPU] > 0.01,
        "some setting puts it where the measured one is": all(reached),
    }


def growth(chapter: Chapter, state: str, selectivity: float) -> Interval:
    """Time of the clustered sequential scan at a selectivity over that at the least one."""
    seconds = times(chapter, CLUSTERED, state)[SEQUENTIAL]
    least = queries.steps()[0]
    return statistics.ratio(seconds[selectivity], seconds[least], seed=chapter.parameters.seed)


def storing_facts(
    chapter: Chapter, planned: pd.DataFrame, touched: pd.DataFrame
) -> dict[str, bool]:
    """Whether a sequential scan costs the same at every selectivity, and what takes the time."""
    most = queries.steps()[-1]
    stored, counted = growth(chapter, WARM, most), growth(chapter, COUNTED, most)
    costs = planned[planned["method"] == SEQUENTIAL].groupby("layout")["cost"].nunique()
    return {
        "its calculated cost is the same at every selectivity": (costs == 1).all(),
        "it touches the same pages at every selectivity": touched[SEQUENTIAL].nunique() == 1,
        "it takes longer the more tuples are stored": stored.low > 1,
        "without storing them its time grows less": counted.high < stored.low,
    }


def index_only(chapter: Chapter) -> Interval:
    """Time to count all ranges by index-only scan over that by index scan."""
    seconds = times(chapter, CLUSTERED, COUNTED)
    totals = [seconds[method].sum(axis=1) for method in (INDEX_ONLY, INDEX)]
    return statistics.ratio(*totals, seed=chapter.parameters.seed)
