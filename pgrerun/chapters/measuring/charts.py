"""The charts of the chapter: what is recorded and what is drawn from it, and their words."""

import math
from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.measuring import evidence
from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    lock_waits,
    observers,
    over_time,
    slow_disk,
)
from pgrerun.page import charts, narrate
from pgrerun.page.narrate import percent
from pgrerun.record import statistics

_POINTS = 120  # on a chart over time; longer runs are drawn in wider slots
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
            result=lambda frame: _told(chapter, frame),
        ),
        charts.Axis("time, relative to the first scan"),
        reference=charts.Reference(1, "no difference"),
    )


def _told(chapter: Chapter, ratios: pd.DataFrame) -> str:
    """Which planted differences the intervals tell, of how many pairs, and whether equality is."""
    run, rows = charts.own(ratios)
    _, observed = chapter.by_provenance("twins")[-1]
    equal, planted = rows[rows["label"] == aa_runs.OTHER], rows[rows["label"] != aa_runs.OTHER]
    found = list(planted.loc[planted["low"] > 1, "label"])
    missed = list(planted.loc[planted["low"] <= 1, "label"])
    each = narrate.count(observed["block"].nunique(), "pair")
    if not found:
        said = "none of the planted differences is found, as no interval lies above 1"
    elif not missed:
        said = "all planted differences are found"
    else:
        said = f"what is found is {narrate.listed(found)}, and not {narrate.listed(missed)}"
    alarm = not (equal["low"] <= 1).all() or not (equal["high"] >= 1).all()
    return f"{run}, with {each}, {said}." + (
        " A difference is told where there is none, by the interval of the same scan."
        if alarm
        else ""
    )


def power(found: pd.DataFrame) -> charts.Figure:
    """How often a difference is found, over the number of pairs."""
    # "no effect" would find no place below the lines that end above it
    planted = {effect: f"{100 * (effect - 1):.0f} %" for effect in (1.0, *aa_runs.EFFECTS)}
    series = found["effect"].map(planted)
    frame = found.rename(columns={"pairs": "x", "found": "value"})
    return charts.lines(
        frame[["x", "value", "low", "high"]].assign(kind="simulated", series=series),
        charts.Words(
            question="How many pairs does it take to find an effect in this machine's noise?",
            caption=(
                "Share of experiments whose interval excludes 1, drawn from the recorded pairs of"
                " equal runs, by the planted effect. Where that is none, it is the share of false"
                " alarms."
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
    for effect, fewer, pairs in evidence.pairs_needed(found).itertuples(index=False):
        one = f"one of {100 * (effect - 1):.0f} %"
        last = found[found["effect"] == effect].sort_values("pairs").tail(1)
        if pd.notna(pairs):
            least = f", and not by {fewer:.0f}" if fewer else ""
            told.append(f"{one} by {narrate.count(int(pairs), 'pair')}{least}")
        elif len(last):
            most, share = last["pairs"].iloc[0], last["found"].iloc[0]
            told.append(
                f"{one} not even by {narrate.count(most, 'pair')}, which find it in"
                f" {percent(share)}"
            )
    alarms = percent(found.loc[found["effect"] == 1, "found"].max())
    return (
        f"In at least {100 * aa_runs.POWER:.0f} % of the experiments an effect is found:"
        f" {'; '.join(told)}. False alarms come in at most {alarms}."
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
            result=lambda _: _named(noticed),
        ),
        charts.Axis("repeats"),
        _SHARE,
    )


def _named(noticed: pd.DataFrame) -> str:
    """How often so many repeats as the talk advises name the run that is off, by either rule."""
    many = evidence.repeats()
    rows = noticed[noticed["repeats"] == many]
    told = (
        f"{off}, "
        + narrate.listed([f"{percent(row.share)} {row.rule}" for row in of_one.itertuples()])
        for off, of_one in rows.groupby("spoilt", sort=False)
    )
    return (
        f"With {narrate.count(many, 'repeat')}, a spoilt run is named in these shares of the"
        f" experiments: {'; '.join(told)}."
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
            result=lambda _: _misled(found),
        ),
        charts.Axis("time, relative to the same scan"),
        reference=charts.Reference(1, "the truth"),
    )


def _misled(found: Mapping[str, statistics.Interval]) -> str:
    """Which of the comparisons misses the truth, and how wide their intervals are."""
    misses = [name for name, x in found.items() if not x.low <= 1 <= x.high]
    pairs, series = (math.log(x.high / x.low) for x in found.values())
    said = (
        f"the truth lies outside of the interval of the runs compared {narrate.listed(misses)}"
        if misses
        else "both intervals include the truth"
    )
    wide = "wider" if series > pairs else "no wider"
    return (
        f"In this run, {said}; that of the runs compared one after the other is {wide} than that"
        " of the pairs."
    )


def throughput(watched: pd.DataFrame) -> charts.Figure:
    """Throughput of reads and writes over time, and the WAL of the writes."""
    together = -(-int(watched["load"].value_counts().max()) // _POINTS)
    panels = {
        load: _drawn(frame, "throughput", f"throughput, {load}", together)
        for load, frame in watched.groupby("load", sort=False)
    }
    writes = watched[watched["load"] == over_time.WRITES]
    wal = _drawn(writes, "wal", f"WAL, {over_time.WRITES}", together)
    slot = f"{narrate.number(together * float(watched['time'].iloc[1]))} s"
    slot += f" ({together} of those in which it is counted)" if together > 1 else ""
    began = narrate.count(int(writes["checkpoint"].sum()), "checkpoint")
    found = _swings(panels)
    return charts.lines(
        charts.together([*panels.values(), wal]).assign(kind="measured"),
        charts.Words(
            question="How does throughput move during a run?",
            caption=(
                "The runs of each load, one after the other, each a line of its own: transactions"
                f" in slots of {slot}, and the WAL that a write leaves, as a share of the mean."
                f" In the runs of writes {began} began. Where runs are short, cycles of"
                " checkpoints were made as short as they are."
            ),
            name="measuring-time",
            description=found,
            result=lambda _: found,
        ),
        charts.Axis("time", "s"),
        charts.Axis("share of the mean", zero=True),
        own_scales=True,
    )


def _drawn(frame: pd.DataFrame, column: str, panel: str, together: int) -> pd.DataFrame:
    """A column over time as a share of its mean, so many slots of a run together."""
    slots = frame.groupby("run").cumcount() // together
    drawn = frame.groupby(["run", slots]).agg(x=("time", "first"), value=(column, "mean"))
    value = drawn["value"] / frame[column].mean()
    return drawn.assign(panel=panel, value=value, piece=drawn.index.get_level_values("run"))


def _swings(drawn: Mapping[str, pd.DataFrame]) -> str:
    """Between what the throughput of each load lies, as drawn, and which of them swings more."""
    told = [
        f"{load} lie between {frame['value'].min():.2f} and {frame['value'].max():.2f} times their"
        " mean"
        for load, frame in drawn.items()
    ]
    swing = {load: over_time.swing(frame["value"].to_numpy()) for load, frame in drawn.items()}
    most = max(swing, key=swing.__getitem__)
    least = min(swing, key=swing.__getitem__)
    return (
        f"In this run, {narrate.listed(told)}: {most} swing more, by a standard deviation of"
        f" {percent(swing[most])} of the mean, {least} by {percent(swing[least])}."
    )


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
            result=lambda _: _queued(chapter),
        ),
        charts.Axis("throughput", "cycles/s", zero=True),
    )


def _queued(chapter: Chapter) -> str:
    """Measured throughput over that of theory, by the number of programs."""
    kind, observed = chapter.by_provenance(slow_disk.QUEUE)[-1]
    measured, theory = (wide(observed, metric) for metric in ("measured", "predicted"))
    told = []
    for number in slow_disk.PROGRAMS:
        name = slow_disk.programs(number)
        ratio = statistics.ratio(measured[name], theory[name], seed=chapter.parameters.seed)
        told.append(f"{narrate.interval(ratio, against=(1,))} times with {name}")
    return f"{charts.WHOSE[kind]}, throughput over that of theory is {narrate.listed(told)}."
