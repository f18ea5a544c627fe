"""The first set: where a scan should be left for another, and what planning otherwise costs."""

from dataclasses import replace

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import queries
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.experiments.scans import AGAIN, FORCED, STORED
from pgrerun.chapters.optimizer.variants import (
    ATTRIBUTES,
    BITMAP,
    CLUSTERED,
    COLD,
    INDEX,
    SEQUENTIAL,
    SHUFFLED,
    WARM,
)
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, about, greater, supporting

# The scan that the sequential one is compared with: the one that the planner prefers otherwise.
RIVALS = {CLUSTERED: INDEX, SHUFFLED: BITMAP}


# ---- what is planned


def choices(planned: pd.DataFrame) -> pd.DataFrame:
    """The planned method and the costs of all, a row per layout and selectivity."""
    by = ["layout", "selectivity"]
    costs = planned.pivot(index=by, columns="method", values="cost")[list(FORCED)]
    chosen = planned[planned["chosen"]].set_index(by)["method"].rename("planned")
    return chosen.to_frame().join(costs).reset_index()


def linear_facts(planned: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether the calculated cost of the clustered index scan is a line over selectivity."""
    in_print = printed.table("optimizer_revised")["cost"]
    steepness = (in_print["x2"] - in_print["x1"]) / in_print.max()
    clustered = planned[planned["layout"] == CLUSTERED].set_index("selectivity")
    by_method = {method: rows["cost"] for method, rows in clustered.groupby("method")}
    rises = by_method[INDEX].sort_index().diff().dropna()
    here = rises.mean() / by_method[SEQUENTIAL].iloc[0]
    return {
        "the cost rises with every tenth": (rises > 0).all(),
        "by the same amount, to a fiftieth": rises.max() / rises.min() <= 1.02,
        "relative to the sequential scan's cost the rise is the printed one, to a tenth": (
            supporting(about(here, steepness, 0.1))
        ),
    }


def switched(switches: dict[str, float]) -> dict[str, bool]:
    """Whether the planner leaves the index for a sequential scan by the clustered attribute."""
    step, after, best = (
        printed.cell("optimizer_said", name, "value")
        for name in ("step", "revised_switch", "best_switch")
    )
    here = switches[CLUSTERED]
    return {
        "the planner takes the index below a selectivity and the sequential scan above it": (
            0 < here < 1
        ),
        f"that selectivity, {here:.2f}, is where Figure 3.14 or the text has it": (
            after - step <= here <= best
        ),
    }


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

    1 where it never does, 0 where it always has, NaN where a time can't be. The line is Theil and
    Sen's, the median of all slopes, so that a few disturbed times don't pull it.
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
    possible = seconds.where((seconds > 0) & (seconds < np.inf))
    differences = (possible[method] - possible[SEQUENTIAL]).to_numpy()
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


def best_clustered(chapter: Chapter, best: pd.DataFrame, cache: str = WARM) -> Interval:
    """Where the sequential scan became faster than the index scan of the clustered attribute."""
    times(chapter, CLUSTERED, cache)  # left here where it wasn't measured, as on old releases
    return best.set_index(["layout", "cache"]).at[(CLUSTERED, cache), "interval"]


def reading_share(chapter: Chapter, method: str) -> Interval:
    """Share of a cold sweep's time by the clustered attribute that reading from storage takes.

    It is what the same sweep takes less in memory.
    """
    warm, cold = (times(chapter, CLUSTERED, cache)[method].sum(axis=1) for cache in (WARM, COLD))
    computing = statistics.ratio_of_medians(warm, cold, chapter.parameters.seed)
    return replace(
        computing,
        estimate=1 - computing.estimate,
        low=1 - computing.high,
        high=1 - computing.low,
    )


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


def tuning_facts(tuned: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether cost settings move the clustered switch-over as far as the report would have it.

    The report's factor weighs all I/O against all computing. random_page_cost prices a part of the
    I/O, and the report's relation is clustered, so the other three facts stand beside.
    """
    said = printed.table("optimizer_said")["value"]
    step = said["best_switch"] - said["revised_switch"]
    switches = tuned.groupby(["layout", "knob"])["switch"]
    far = switches.max() - switches.min() >= step
    factors = f"{min(scans.FACTORS):g} to {max(scans.FACTORS):g}"
    own = tuned.set_index(["layout", "knob"]).loc[[(CLUSTERED, scans.CPU)]].sort_values("factor")
    start, end = own["switch"].iloc[[0, -1]]
    return {
        f"all CPU costs times {factors} move the switch of the clustered relation, from"
        f" {start:.2f} to {end:.2f}, by the {step:.1g} that the report needs": (
            far[CLUSTERED, scans.CPU]
        ),
        "in the clustered relation random_page_cost alone does": supporting(
            far[CLUSTERED, scans.RANDOM_PAGE]
        ),
        "in the relation that isn't clustered all CPU costs do": supporting(
            far[SHUFFLED, scans.CPU]
        ),
        "in the relation that isn't clustered random_page_cost alone does": supporting(
            far[SHUFFLED, scans.RANDOM_PAGE]
        ),
    }


def growth(chapter: Chapter, state: str, selectivity: float) -> Interval:
    """Time of the clustered sequential scan at a selectivity over that at the least one."""
    seconds = times(chapter, CLUSTERED, state)[SEQUENTIAL]
    least = queries.steps()[0]
    return statistics.ratio(seconds[selectivity], seconds[least], seed=chapter.parameters.seed)


def once_facts(
    chapter: Chapter, planned: pd.DataFrame, touched: pd.DataFrame
) -> dict[str, bool | Part]:
    """Whether a sequential scan reads and costs the same at every selectivity, and what doesn't."""
    most = queries.steps()[-1]
    stored = times(chapter, CLUSTERED, STORED)[SEQUENTIAL]
    skipped = times(chapter, CLUSTERED, WARM)[SEQUENTIAL]
    # two experiments, so that their blocks are no pairs
    storing = statistics.ratio_of_medians(stored[most], skipped[most], chapter.parameters.seed)
    costs = planned[planned["method"] == SEQUENTIAL].groupby("layout")["cost"].nunique()
    return {
        "the calculated cost of a sequential scan is the same at every selectivity": (
            (costs == 1).all()
        ),
        "a sequential scan touches every page once, at every selectivity": (
            (touched[SEQUENTIAL] == touched["pages"]).all()
        ),
        "it takes longer the more tuples are stored": supporting(
            greater(growth(chapter, STORED, most))
        ),
        "of the widest range most of the time is for storing": supporting(greater(storing, 2)),
    }
