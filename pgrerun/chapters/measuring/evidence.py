"""What the experiments say about the claims, and what charts and sentences say of them."""

from itertools import pairwise

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
from pgrerun.record.verdicts import Part, greater, less, supporting

# ---- runs that don't differ


def pairs_needed(power: pd.DataFrame) -> pd.DataFrame:
    """For each effect the least number of pairs tried that finds it with `POWER`.

    Columns: effect, fewer (the next smaller number that was tried, which doesn't; 0 if none was),
    pairs. Missing if no number does.
    """
    reached = power[(power["found"] >= aa_runs.POWER) & (power["effect"] > 1)]
    least = reached.groupby("effect")["pairs"].min().reindex(aa_runs.EFFECTS)
    tried = sorted(set(power["pairs"]))
    fewer = {pairs: below for below, pairs in pairwise([0, *tried])}
    return pd.DataFrame({"fewer": least.map(fewer), "pairs": least}).reset_index()


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


def repeats() -> int:
    """How many repeats the talk advises."""
    return int(printed.cell("measuring_said", "repeats", "value"))


def repeat_facts(chapter: Chapter, noticed: pd.DataFrame) -> dict[str, bool | None | Part]:
    """The advice to repeat about three times, so that a run that is off shows."""
    said = repeats()
    middle = noticed[noticed["spoilt"] == aa_runs.spoilt(aa_runs.SPOILT[1])]
    shares, drawn = middle.set_index(["rule", "repeats"])["share"], aa_runs.drawn(chapter)

    def named(rule: str, repeats: int) -> bool | None:
        return greater(statistics.share(round(shares[rule, repeats] * drawn), drawn), ENOUGH)

    often = f"at least {100 * ENOUGH:.0f} % of experiments"
    off = f"a run that is {aa_runs.spoilt(aa_runs.SPOILT[1])}"
    return {
        f"{said} repeats name {off} in {often} where the noise is known": named(BY_NOISE, said),
        f"{said} repeats name {off} in {often} by themselves": named(BY_DIXON, said),
        f"{said - 1} repeats name {off} in {often} where the noise is known": supporting(
            named(BY_NOISE, said - 1)
        ),
    }


# ---- throughput over time

AFTER = 6  # slots after a checkpoint began that are compared with all others
STRETCHES = (1, 2, 4, 8, 16, 32, 64)  # slots


def cycles(chapter: Chapter, watched: pd.DataFrame) -> int:
    """Whole checkpoint cycles of PostgreSQL's own length that were watched."""
    if over_time.hurried(chapter):
        return 0
    return max(0, after_checkpoints(watched)["checkpoints"] - 1)


def spread_by_length(watched: pd.DataFrame) -> pd.DataFrame:
    """How far the means of stretches of the runs scatter, by the stretch's length.

    Columns: load, length (s), spread (share of the mean), random (the spread that slots without
    memory would have: that of single slots over the root of their number). A length is left out
    where the runs of a load have fewer than four such stretches.
    """
    rows, slot = [], float(watched["time"].iloc[1])  # of runs put end to end
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
            rows.append((name, many * slot, spread, random))
    return pd.DataFrame(rows, columns=["load", "length", "spread", "random"])


def after_checkpoints(watched: pd.DataFrame) -> dict[str, float]:
    """Writes in the `AFTER` slots after a checkpoint began, over all other slots.

    checkpoints (their number), throughput and wal (per transaction), both ratios; NaN where no
    checkpoint began, or no slot is left to compare with.
    """
    writes = watched[watched["load"] == over_time.WRITES].reset_index(drop=True)
    by_run = writes["checkpoint"].astype(float).groupby(writes["run"])
    following = by_run.rolling(AFTER, min_periods=1).max().droplevel(0)
    near = following.sort_index().to_numpy(bool)
    found = {
        name: float(writes.loc[near, name].mean() / writes.loc[~near, name].mean())
        for name in ("throughput", "wal")
    }
    return {"checkpoints": int(writes["checkpoint"].sum()), **found}


# ---- watching, and waiting for locks


def log_costs(chapter: Chapter) -> dict[str, Interval | Part]:
    """What a log of all transactions costs: throughput without it, processor time with it."""
    log, none = observers.FULL_LOG, observers.NO_LOG
    used = chapter.ratio("logging", "processor", log, none)
    return {
        "throughput without it over that with it": (
            chapter.ratio("logging", "throughput", none, log)
        ),
        "processor time of a lookup with it over that without": supporting(used),
    }


def profiler_facts(chapter: Chapter) -> dict[str, bool | None | Part]:
    """Whether perf costs next to nothing, and that it isn't so of any instrument.

    Compared with both runs that nobody watched.
    """
    times, seed = chapter.table("profilers", "time"), chapter.parameters.seed
    unwatched = times[[observers.UNWATCHED, observers.AGAIN]].mean(axis=1)
    perf, timed = (
        statistics.ratio(times[name], unwatched, seed=seed)
        for name in (observers.PERF, observers.TIMED)
    )
    return {
        "under perf with call graphs a scan takes less than 5 % longer": less(perf, 1.05),
        "under EXPLAIN ANALYZE it takes more": supporting(greater(timed, margin=0.05)),
    }


def profile_facts(profiles: dict[str, lock_waits.Profile]) -> dict[str, bool | None | Part]:
    """Sleeping on locks doesn't show in a CPU profile, and does in one of context switches."""
    free, queued = profiles[lock_waits.FREE], profiles[lock_waits.QUEUED]
    return {
        "the CPU profile hardly shows the lock manager": less(
            queued.lock_code, free.lock_code.estimate + 0.1
        ),
        "among the reasons to sleep the row's lock appears": greater(
            queued.asleep, free.asleep.estimate + 0.1
        ),
        "waiting for the lock costs throughput": supporting(queued.tps < 0.8 * free.tps),
    }


# What no user-visible tool tells: the query that counts the tools that do, and the release from
# which on they do (None where the query can be asked of any).
_UNTOLD = {
    "views hide which lightweight lock a backend waits for": (
        "activity.lightweight_locks",
        90600,
    ),
    "views hide that a backend spins": ("activity.spins", 130000),
    "views hide how often a lightweight lock was taken": ("activity.lock_counts", None),
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


def exaggerated(chapter: Chapter) -> dict[str, bool | None | Part]:
    """Whether a row for all is more of a problem to pgbench than to the paced load."""
    stalls, latency = (chapter.table("loads", metric) for metric in ("stalls", "latency"))
    extreme, paced = (
        workloads.named(kind, workloads.HOT_ROW) for kind in (workloads.EXTREME, workloads.PACED)
    )
    slower = [
        latency[workloads.named(kind, workloads.HOT_ROW)]
        / latency[workloads.named(kind, workloads.OWN_ROW)]
        for kind in (workloads.EXTREME, workloads.PACED)
    ]
    more = statistics.median(stalls[extreme] - stalls[paced], seed=chapter.parameters.seed)
    return {
        "pgbench's transactions wait for that row more often": greater(more, 0),
        "their latency grows by a larger factor": supporting(
            greater(statistics.ratio(*slower, seed=chapter.parameters.seed))
        ),
    }


# ---- mechanisms


def fix_facts(chapter: Chapter, scans: pd.DataFrame) -> dict[str, bool | None]:
    """The claim that a fix can work for a reason unrelated to its hypothesis."""
    scanned = scans.set_index("variant").at[mechanisms.INDEXED, mechanisms.SCANS]
    indexed, analyzed = (
        chapter.ratio("fixes", "time", mechanisms.BEFORE, fix)
        for fix in (mechanisms.INDEXED, mechanisms.STATISTICS)
    )
    return {
        "the index makes the query faster": greater(indexed, margin=0.05),
        "the index is never scanned": scanned == 0,
        "without the index, what it brought along makes the query faster, too": greater(
            analyzed, margin=0.05
        ),
    }
