"""The charts of the chapter: what is recorded and what is drawn from it, and their words."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring import evidence
from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    lock_waits,
    observers,
    over_time,
    slow_disk,
)
from pgrerun.page import charts, narrate
from pgrerun.record import statistics

_POINTS = 120  # on a chart over time; longer runs are drawn in wider slots
_OFTEN = 0.8  # of the experiments: the power that is usually asked for
_SHARE = charts.Axis("share of experiments", zero=True)


def told_apart(chapter: Chapter) -> charts.Figure:
    """The planted differences, as the pairs show them."""
    pairs = {name: (name, aa_runs.ONE) for name in aa_runs.VARIANTS if name != aa_runs.ONE}
    return charts.compare(
        chapter.ratios("twins", "time", pairs),
        charts.Words(
            question="Are planted differences of two, five and ten per cent found on this machine?",
            caption=(
                "Time of each scan over that of the first one in the same block: median and"
                " interval. An interval that keeps off 1 has told a difference."
            ),
            name="measuring-twins",
        ),
        charts.Axis("time, relative to the first scan"),
        reference=charts.Reference(1, "no difference"),
    )


def power(found: pd.DataFrame) -> charts.Figure:
    """How often a difference is found, over the number of pairs."""
    planted = {effect: f"{100 * (effect - 1):.0f} %" for effect in aa_runs.EFFECTS}
    series = found["effect"].map({1.0: "no effect"} | planted)
    frame = found.rename(columns={"pairs": "x", "found": "value"})
    return charts.lines(
        frame[["x", "value", "low", "high"]].assign(kind="simulated", series=series),
        charts.Words(
            question="How many pairs does it take to find an effect in this machine's noise?",
            caption=(
                "Share of experiments whose interval excludes 1, drawn from the recorded pairs of"
                " equal runs, by the planted effect. For no effect it is the share of false alarms."
            ),
            name="measuring-power",
            result=lambda _: _needed(found),
        ),
        charts.Axis("pairs", log=True),
        _SHARE,
    )


def _needed(found: pd.DataFrame) -> str:
    """From how many pairs on each planted effect is found often enough, and the false alarms."""
    told = []
    for effect in aa_runs.EFFECTS:
        drawn = found[found["effect"] == effect].sort_values("pairs")
        enough, last = drawn[drawn["found"] >= _OFTEN], drawn.iloc[-1]
        told.append(
            f"one of {100 * (effect - 1):.0f} % "
            + (
                f"from {narrate.count(enough['pairs'].iloc[0], 'pair')} on"
                if len(enough)
                else f"not even by {narrate.count(last['pairs'], 'pair')}, which find it in"
                f" {100 * last['found']:.0f} %"
            )
        )
    alarms = 100 * found.loc[found["effect"] == 1, "found"].max()
    return (
        f"In at least {100 * _OFTEN:.0f} % of the experiments an effect is found: {'; '.join(told)}"
        f". False alarms come in at most {alarms:.0f} %."
    )


def spoilt(noticed: pd.DataFrame) -> charts.Figure:
    """How often the one run that is off is named, over the number of repeats."""
    names = {"repeats": "x", "share": "value", "rule": "panel", "spoilt": "series"}
    return charts.lines(
        noticed.rename(columns=names).assign(kind="simulated"),
        charts.Words(
            question="How many repeats show which run is off?",
            caption=(
                "Share of drawn experiments in which the one spoilt run is named, by how far it is"
                " off."
            ),
            name="measuring-repeats",
        ),
        charts.Axis("repeats"),
        _SHARE,
    )


def neighbour(chapter: Chapter, time: pd.DataFrame) -> charts.Figure:
    """Pairs and series with a neighbour who wakes up halfway."""
    found = evidence.pairs_and_series(chapter, time)
    return charts.compare(
        charts.rows(found, "measured"),
        charts.Words(
            question="What does a neighbour who wakes up halfway do to a comparison?",
            caption=(
                "The same runs of the same scan, compared in interleaved pairs, and as if one"
                " variant had run before the neighbour woke up and the other after."
            ),
            name="measuring-neighbour",
        ),
        charts.Axis("time, relative to the same scan"),
        reference=charts.Reference(1, "the truth"),
    )


def throughput(watched: pd.DataFrame) -> charts.Figure:
    """Throughput of reads and writes over time, and the WAL of the writes."""
    panels, said = [], []
    for load, frame in watched.groupby("load", sort=False):
        panels.append(_drawn(frame, "throughput", f"throughput, {load}"))
        began = int(frame["checkpoint"].sum())
        relative = frame["throughput"] / frame["throughput"].mean()
        said.append(
            f"{load.capitalize()}: from {relative.min():.2f} to {relative.max():.2f} times their"
            f" mean; {narrate.count(began, 'checkpoint')} began."
        )
    writes = watched[watched["load"] == over_time.WRITES]
    panels.append(_drawn(writes, "wal", f"WAL, {over_time.WRITES}"))
    return charts.lines(
        charts.together(panels).assign(kind="measured"),
        charts.Words(
            question="How does throughput move during a run?",
            caption=(
                "The runs of each load, one after the other: transactions in slots, and the WAL"
                " that a write leaves, as a share of the mean. Cycles of checkpoints were made as"
                f" short as the runs are. {' '.join(said)}"
            ),
            name="measuring-time",
            description=" ".join(said),
        ),
        charts.Axis("time", "s"),
        charts.Axis("share of the mean", zero=True),
        own_scales=True,
    )


def _drawn(frame: pd.DataFrame, column: str, panel: str) -> pd.DataFrame:
    """A column over time as a share of its mean, in slots wide enough for a chart."""
    together = -(-len(frame) // _POINTS)
    slot = frame.reset_index(drop=True).index.to_numpy() // together
    drawn = frame.groupby(slot).agg(x=("time", "first"), value=(column, "mean"))
    return drawn.assign(panel=panel, value=drawn["value"] / frame[column].mean())


def spread(watched: pd.DataFrame) -> charts.Figure:
    """How far runs of a length scatter."""
    found = evidence.spread_by_length(watched).rename(columns={"length": "x", "load": "series"})
    place = found[["x", "series"]]
    return charts.lines(
        [
            place.assign(value=found["spread"], kind="measured"),
            place.assign(value=found["random"], kind="simulated"),
        ],
        charts.Words(
            question="How long must a run be until its mean can be trusted?",
            caption=(
                "Scatter of the mean throughput of stretches of the runs, by their length."
                " Simulated is what slots would do that know nothing of each other."
            ),
            name="measuring-length",
        ),
        charts.Axis("length", "s", log=True),
        charts.Axis("scatter, as a share of the mean", log=True),
    )


def profilers(chapter: Chapter) -> charts.Figure:
    """What each profiler costs."""
    base = observers.UNWATCHED
    pairs = {name: (name, base) for name in observers.PROFILERS if name != base}
    return charts.compare(
        chapter.ratios("profilers", "time", pairs),
        charts.Words(
            question="What does a profiler cost?",
            caption=(
                "How many times slower a scan is under each profiler, against none. The row"
                " “again” is without as well."
            ),
            name="measuring-profilers",
        ),
        charts.Axis("time over that without a profiler", log=True),
        reference=charts.Reference(1, "free"),
    )


def asleep(profiles: Mapping[str, lock_waits.Profile]) -> charts.Figure:
    """Three instruments on two loads."""
    rows = []
    for load, seen in profiles.items():
        share = seen.lock_code.estimate
        code = {"code of the lock manager": share, "other code": 1 - share}
        panels = {
            "CPU profile": code,
            "context switches": seen.chains,
            "wait events": seen.events,
        }
        for panel, shares in panels.items():
            for part, share in shares.items():
                rows.append(charts.row(load, "measured", share, part=part, panel=panel))
    return charts.stacked(
        rows,
        charts.Words(
            question="Which instrument sees that backends wait for a lock?",
            caption=(
                "Clients that update a row each, and clients that all update the same row: shares"
                " of CPU samples, of context switches by what the call chain waits for, and of"
                " active backends in pg_stat_activity."
            ),
            name="measuring-asleep",
            result=lambda _: _seen(profiles[lock_waits.QUEUED]),
        ),
        charts.Axis("share of the samples"),
    )


def _seen(queued: lock_waits.Profile) -> str:
    """What each instrument shows of the load that waits for a lock."""
    waits = queued.events.get(lock_waits.HEAVYWEIGHT, 0.0)
    code, asleep, waits = (
        narrate.interval(share.times(100), "%")
        if isinstance(share, statistics.Interval)
        else f"{narrate.number(100 * share, 0)} %"
        for share in (queued.lock_code, queued.asleep, waits)
    )
    return (
        "Where all update the same row, the lock manager's code takes"
        f" {code} of the CPU samples, while waits for a heavyweight lock are {asleep} of the"
        f" context switches and {waits} of the wait events."
    )


def exaggerated(chapter: Chapter) -> charts.Figure:
    """What a row that all update does to pgbench at full speed and to a paced load."""
    metrics = {
        "stalls": "waits for the row (per thousand transactions)",
        "latency": "latency of a transaction (ms)",
    }
    return charts.compare(
        chapter.medians("loads", metrics),
        charts.Words(
            question="How large is a problem, and to whom?",
            caption=(
                "Waits of a millisecond or more for a row, and the latency of a transaction, where"
                " each client updates a row of its own and where all update the same, for pgbench"
                " at full speed and for an application that asks at a tenth of that."
            ),
            name="measuring-artificial",
        ),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def slowed_as_set(chapter: Chapter) -> charts.Figure:
    """Time of a request of the slowed disk over the time that was set, the shortest first."""
    names = [slow_disk.as_set(seconds) for seconds in sorted(slow_disk.SET)]
    return charts.compare(
        chapter.medians(slow_disk.SERVICE, "over set", dict(zip(names, names, strict=True))),
        charts.Words(
            question="Is the slowed disk as slow as it was set to be?",
            caption=(
                "Time that a read or a write took a program that runs alone, over the time that was"
                " set. More than 1 is what the machine needs to wake a sleeper beyond what is"
                " allowed for."
            ),
            name="measuring-slowed-service",
        ),
        charts.Axis("time of a request, measured over set"),
        reference=charts.Reference(1, "as set"),
    )


def queue_of_one(chapter: Chapter) -> charts.Figure:
    """Throughput of programs that share the slowed disk, beside queueing theory's."""
    names = [slow_disk.programs(number) for number in slow_disk.PROGRAMS]
    labels = dict(zip(names, names, strict=True))
    theory = chapter.medians(slow_disk.QUEUE, "predicted", labels).tail(len(names))
    return charts.compare(
        [
            chapter.medians(slow_disk.QUEUE, "measured", labels),
            theory.assign(kind="simulated"),
        ],
        charts.Words(
            question="Do programs queue for the slowed disk as theory says?",
            caption=(
                "Cycles of reading, sleeping and writing per second, all programs together."
                " Simulated: mean value analysis of one disk that serves one at a time."
            ),
            name="measuring-slowed-queue",
        ),
        charts.Axis("throughput", "cycles/s", zero=True),
    )
