"""What the experiments say about the claims, and what charts and sentences say of them."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    load,
    lock_waits,
    mechanisms,
    observers,
    over_time,
    workloads,
)
from pgrerun.lab.models.repeated_runs import BY_DIXON, BY_NOISE
from pgrerun.lab.server import value
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval

# What is compared for claims on one ratio: experiment, metric, variant, and what it is divided by.
RATIOS = {
    "haas-059": ("sorts", "time", mechanisms.GENERAL, mechanisms.SPECIFIC),
    "haas-070": ("over time", "length", over_time.WRITES, over_time.READS),
    "haas-072": ("over time", "swing", over_time.WRITES, over_time.READS),
    "haas-073": ("logging", "throughput", observers.NO_LOG, observers.FULL_LOG),
    "haas-075": ("profilers", "time", observers.TIMED, observers.PERF),
}


def ratio(chapter: Chapter, claim: str) -> Interval:
    """The ratio that a claim of `RATIOS` is judged by."""
    return chapter.ratio(*RATIOS[claim])


# ---- runs that don't differ


def pairs_needed(power: pd.DataFrame) -> pd.DataFrame:
    """For each effect the least number of pairs that finds it with `POWER`; missing if none does.

    Columns: effect, pairs.
    """
    reached = power[(power["found"] >= aa_runs.POWER) & (power["effect"] > 1)]
    least = reached.groupby("effect")["pairs"].min().reindex(aa_runs.EFFECTS)
    return least.rename("pairs").reset_index()


def unavoidable(pairs: int) -> float:
    """False alarms of an interval that is the whole range of so many values, all on a side of 1."""
    return 2.0 ** (1 - pairs)


def pairs_and_series(chapter: Chapter, time: pd.DataFrame) -> dict[str, Interval]:
    """The runs beside a neighbour, compared in pairs, and as if the variants had run in series."""
    awake = time.index >= aa_runs.NEIGHBOUR_BLOCKS / 2
    before, after = time[~awake].to_numpy().ravel(), time[awake].to_numpy().ravel()
    seed = chapter.parameters.seed
    return {
        "in pairs": statistics.ratio(time[aa_runs.SECOND], time[aa_runs.FIRST], seed=seed),
        "one after the other": statistics.ratio_of_medians(after, before, seed=seed),
    }


ENOUGH = 0.8  # the share of spoilt runs that should be noticed


def repeat_facts(noticed: pd.DataFrame) -> dict[str, bool]:
    """The advice to repeat about three times, so that a run that is off shows."""
    said = int(printed.cell("measuring_said", "repeats", "value"))
    middle = noticed[noticed["spoilt"] == aa_runs.spoilt(aa_runs.SPOILT[1])]
    share = middle.set_index(["rule", "repeats"])["share"]
    return {
        "one repeat fewer can't say which run is off": share[BY_NOISE, said - 1] < ENOUGH,
        "so many repeats can, once the noise is known": share[BY_NOISE, said] >= ENOUGH,
        "so many repeats can by themselves": share[BY_DIXON, said] >= ENOUGH,
    }


# ---- throughput over time

AFTER = 0.3  # seconds after a checkpoint began that are compared with all others
STRETCHES = (1, 2, 4, 8, 16, 32, 64)  # slots


def spread_by_length(watched: pd.DataFrame) -> pd.DataFrame:
    """How far the means of stretches of the runs scatter, by the stretch's length.

    Columns: load, length (s), spread (share of the mean), random (the spread that slots without
    memory would have: that of single slots over the root of their number). A length is left out
    where the runs of a load have fewer than four such stretches.
    """
    rows = []
    for name, frame in watched.groupby("load", sort=False):
        throughput = frame["throughput"].to_numpy()
        for many in STRETCHES:
            stretch = frame.groupby("run").cumcount() // many
            stretches = frame.groupby(["run", stretch])["throughput"]
            means = stretches.mean()[stretches.size() == many]
            if len(means) < 4:
                break
            spread = means.std(ddof=1) / throughput.mean()
            random = over_time.swing(throughput) / np.sqrt(many)
            rows.append((name, many * over_time.SLOT, spread, random))
    return pd.DataFrame(rows, columns=["load", "length", "spread", "random"])


def after_checkpoints(watched: pd.DataFrame) -> dict[str, float]:
    """Writes in the `AFTER` seconds after a checkpoint began, over all other slots.

    checkpoints (their number), throughput and wal (per transaction), both ratios; NaN where no
    checkpoint began, or no slot is left to compare with.
    """
    writes = watched[watched["load"] == over_time.WRITES].reset_index(drop=True)
    slots = round(AFTER / over_time.SLOT)
    by_run = writes["checkpoint"].astype(float).groupby(writes["run"])
    following = by_run.rolling(slots, min_periods=1).max().droplevel(0)
    near = following.sort_index().to_numpy(bool)
    found = {
        name: float(writes.loc[near, name].mean() / writes.loc[~near, name].mean())
        for name in ("throughput", "wal")
    }
    return {"checkpoints": int(writes["checkpoint"].sum()), **found}


# ---- waiting for locks


def profile_facts(profiles: dict[str, lock_waits.Profile]) -> dict[str, bool]:
    """Sleeping on locks doesn't show in a CPU profile, and does in one of context switches."""
    free, queued = profiles[lock_waits.FREE], profiles[lock_waits.QUEUED]
    asleep = [seen.chains.get(lock_waits.HEAVYWEIGHT, 0.0) for seen in (queued, free)]
    return {
        "waiting for the lock costs throughput": queued.tps < 0.8 * free.tps,
        "the CPU profile hardly shows the lock manager": queued.lock_code - free.lock_code < 0.1,
        "among the reasons to sleep the row's lock appears": asleep[0] - asleep[1] > 0.1,
    }


# What no user-visible tool tells: the query that counts the tools that do, and the release from
# which on they do (None where the query can be asked of any).
_UNTOLD = {
    "no view names the lightweight lock that a backend waits for": (
        "activity.lightweight_locks",
        90600,
    ),
    "none shows that a backend spins": ("activity.spins", 130000),
    "none counts how often a lightweight lock was taken": ("activity.lock_counts", None),
}
_WAIT_EVENTS = 170000  # from here on a view lists all wait events


def tool_facts(chapter: Chapter) -> dict[str, bool]:
    """What today's user-visible tools say of lightweight locks, against what LWLOCK_STATS prints.

    The claim says that they don't reveal contention; each fact is true where that is still so.
    """
    facts, version = {}, chapter.server.version
    with chapter.server.connect() as connection:
        for fact, (query, since) in _UNTOLD.items():
            if since and version < _WAIT_EVENTS:
                facts[fact] = version < since
            else:
                facts[fact] = value(connection, int, load.SQL.text(query)) == 0
    return facts


# ---- artificial loads


def exaggeration(chapter: Chapter, change: str = workloads.HOT_ROW) -> Interval:
    """How many times longer a change makes pgbench's transaction, over that for the paced load."""
    latency = chapter.table("loads", "latency")
    slower = [
        latency[workloads.named(kind, change)] / latency[workloads.named(kind, workloads.PLAIN)]
        for kind in (workloads.EXTREME, workloads.PACED)
    ]
    return statistics.ratio(*slower, seed=chapter.parameters.seed)


def ranking(chapter: Chapter) -> dict[str, bool]:
    """Whether pgbench ranks the settings as the paced load does, and whether it measures the same.

    An order counts where an interval excludes 1; what neither decides contradicts nothing.
    """
    changes = list(workloads.CHANGES)
    pairs = [(a, b) for number, a in enumerate(changes) for b in changes[number + 1 :]]
    extreme, paced = (
        [_slower(chapter, kind, *pair) for pair in pairs]
        for kind in (workloads.EXTREME, workloads.PACED)
    )
    sizes = [exaggeration(chapter, change) for change in changes[1:]]
    return {
        "pgbench tells settings apart": any(extreme),
        "the paced load never puts them significantly the other way round": not any(
            a * b < 0 for a, b in zip(extreme, paced, strict=True)
        ),
        "how large an effect is depends on the load": any(
            size.low > 1 or size.high < 1 for size in sizes
        ),
    }


def _slower(chapter: Chapter, kind: str, change: str, other: str) -> int:
    """1 if a load is significantly slower under a change than under another; -1 if faster."""
    names = workloads.named(kind, change), workloads.named(kind, other)
    found = chapter.ratio("loads", "latency", *names)
    return int(found.low > 1) - int(found.high < 1)


# ---- several axes

_MORE_IS_BETTER = ("throughput",)


def axes(chapter: Chapter) -> pd.DataFrame:
    """Each axis: axis, unit, the median of either variant under its name, better (see `better`)."""
    rows = []
    for axis, unit in workloads.AXES.items():
        median = chapter.table("axes", axis).median()
        variants = [median[variant] for variant in workloads.PER_TRANSACTION]
        rows.append((axis, unit, *variants, better(chapter, axis)))
    return pd.DataFrame(rows, columns=["axis", "unit", *workloads.PER_TRANSACTION, "better"])


def better(chapter: Chapter, axis: str) -> str:
    """The variant that is significantly better on an axis; "" if that can't be told."""
    values = chapter.table("axes", axis)
    singly, together = values[workloads.SINGLY], values[workloads.TOGETHER]
    if (values <= 0).any(axis=None):  # counts may be zero: only a difference in every block tells
        more, less = (together > singly).all(), (together < singly).all()
    else:
        found = statistics.ratio(together, singly, seed=chapter.parameters.seed)
        more, less = found.low > 1, found.high < 1
    if not (more or less):
        return ""
    return workloads.TOGETHER if more == (axis in _MORE_IS_BETTER) else workloads.SINGLY


def turned_over(chapter: Chapter) -> Interval:
    """In each block the lesser of two ratios, many rows at a time over one.

    They are of throughput and of median latency: above 1 what is better on the one axis is worse on
    the other.
    """
    found = []
    for axis in ("throughput", "median latency"):
        values = chapter.table("axes", axis)
        found.append(values[workloads.TOGETHER] / values[workloads.SINGLY])
    return statistics.median(np.minimum(*found), seed=chapter.parameters.seed)


# ---- mechanisms


def fix_facts(chapter: Chapter, scans: pd.DataFrame) -> dict[str, bool]:
    """The claim that a fix can work for a reason unrelated to its hypothesis."""
    scanned = scans.set_index("variant").at[mechanisms.INDEXED, mechanisms.SCANS]
    indexed, analyzed = (
        chapter.ratio("fixes", "time", mechanisms.BEFORE, fix)
        for fix in (mechanisms.INDEXED, mechanisms.STATISTICS)
    )
    return {
        "the index makes the query faster": indexed.low > 1.05,
        "the index is never scanned": scanned == 0,
        "without the index, what it brought along makes the query faster, too": analyzed.low > 1.05,
    }
