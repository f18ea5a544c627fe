"""The charts of the chapter: frames from the recorded and the drawn experiments, and their words."""

import pandas as pd

from pgrerun import charts, narrate, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.measuring import artificial, sleeping, steadiness, twins, watching

_POINTS = 120  # on a chart over time; longer runs are drawn in wider slots


def _ratios(chapter: Chapter, experiment: str, metric: str, pairs: list[tuple[str, str, str]], panel: str = "") -> list[dict]:
    """Rows of the published run and of this one: (label, arm, base) each."""
    rows = []
    for kind, frame in chapter.by_provenance(experiment):
        values = wide(frame, metric)
        known = [] if values.empty else [(label, arm, base) for label, arm, base in pairs if {arm, base} <= set(values)]
        more = {"panel": panel} if panel else {}
        rows += [charts.row(label, kind, statistics.ratio(values[arm], values[base], seed=chapter.parameters.seed), **more) for label, arm, base in known]
    return rows


def told_apart(chapter: Chapter) -> charts.Figure:
    """The planted differences, as the pairs show them."""
    frame = pd.DataFrame(_ratios(chapter, "twins", "time", [(arm, arm, twins.ONE) for arm in list(twins.ARMS)[1:]]))
    return charts.compare_to_print(
        frame,
        question="Are planted differences of two, five and ten per cent found on this machine?",
        caption="Time of each scan over that of the first one in the same block: median and interval. An interval that keeps off 1 has told a difference.",
        description=narrate.described(frame),
        quantity="time, relative to the first scan", unit="", reference=1, reference_label="no difference", name="measuring-twins",
    )  # fmt: skip


def power(found: pd.DataFrame) -> charts.Figure:
    """How often a difference is found, over the number of pairs."""
    series = {1.0: "no effect"} | {effect: f"{100 * (effect - 1):.0f} %" for effect in twins.EFFECTS}
    frame = found.rename(columns={"pairs": "x"}).assign(value=found["found"], kind="simulated", series=found["effect"].map(series))
    frame = frame[["x", "value", "low", "high", "kind", "series"]]
    return charts.lines(
        frame,
        question="How many pairs does it take to find an effect in this machine's noise?",
        caption="Share of experiments whose interval excludes 1, drawn from the recorded pairs of equal runs, by the planted effect. For no effect it is the share of false alarms.",
        description=narrate.described(frame.assign(label=frame["series"] + " with " + frame["x"].astype(str) + " pairs")),
        x_quantity="pairs", x_unit="", quantity="share of experiments", unit="", log_x=True, zero=True, name="measuring-power",
    )  # fmt: skip


def spoilt(found: pd.DataFrame) -> charts.Figure:
    """How often the one run that is off is named, over the number of repeats."""
    frame = found.rename(columns={"repeats": "x", "share": "value", "rule": "panel", "spoilt": "series"}).assign(kind="simulated")
    return charts.lines(
        frame,
        question="How many repeats show which run is off?",
        caption="Share of drawn experiments in which the one spoilt run is named, by how far it is off.",
        description=narrate.described(frame.assign(label=frame["series"] + ", " + frame["x"].astype(str) + " repeats")),
        x_quantity="repeats", x_unit="", quantity="share of experiments", unit="", facet="panel", zero=True, name="measuring-repeats",
    )  # fmt: skip


def neighbour(chapter: Chapter) -> charts.Figure:
    """Pairs and series with a neighbour who wakes up halfway."""
    frame = pd.DataFrame([charts.row(way, "measured", found) for way, found in twins.pairs_and_series(chapter).items()])
    return charts.compare_to_print(
        frame,
        question="What does a neighbour who wakes up halfway do to a comparison?",
        caption="The same runs of the same scan, compared in interleaved pairs, and as if one arm had run before the neighbour woke up and the other after.",
        description=narrate.described(frame),
        quantity="time, relative to the same scan", unit="", reference=1, reference_label="the truth", name="measuring-neighbour",
    )  # fmt: skip


def over_time(shown: pd.DataFrame | None) -> charts.Figure | None:
    """Throughput of reads and writes over time."""
    if shown is None:
        return None
    rows = []
    for load, frame in shown.groupby("load", sort=False):
        together = max(1, -(-len(frame) // _POINTS))
        grouped = frame.groupby(frame.reset_index(drop=True).index.to_numpy() // together)
        means = grouped.agg(x=("time", "first"), value=("throughput", "mean"))
        rows.append(means.assign(panel=f"throughput, {load}", value=means["value"] / frame["throughput"].mean()))
    writes = shown[shown["load"] == "writes"].reset_index(drop=True)
    together = max(1, -(-len(writes) // _POINTS))
    logged = writes.groupby(writes.index // together).agg(x=("time", "first"), value=("log", "mean"))
    rows.append(logged.assign(panel="log, writes", value=logged["value"] / writes["log"].mean()))
    frame = pd.concat(rows, ignore_index=True).assign(kind="measured")
    words = []
    for load, part in shown.groupby("load", sort=False):
        began = narrate.count(int(part["checkpoint"].sum()), "checkpoint") if part["checkpoint"].any() else "no checkpoint"
        rate = part["throughput"] / part["throughput"].mean()
        words.append(f"{load.capitalize()}: from {rate.min():.2f} to {rate.max():.2f} times their mean; {began} began.")
    return charts.lines(
        frame,
        question="How does throughput move during a run?",
        caption=f"The runs of each load, one after the other: transactions in slots, and the log that a write leaves, as a share of the mean. A cycle of checkpoints is as long as max_wal_size = {steadiness.SETTINGS['max_wal_size']} makes it. {' '.join(words)}",
        description=" ".join(words),
        x_quantity="time", x_unit="s", quantity="share of the mean", unit="", facet="panel", own_scales=True, zero=True, name="measuring-time",
    )  # fmt: skip


def spread(shown: pd.DataFrame | None) -> charts.Figure | None:
    """How far runs of a length scatter."""
    if shown is None:
        return None
    found = steadiness.spread_by_length(shown).rename(columns={"length": "x", "load": "series"})
    frame = pd.concat([found.assign(value=found["spread"], kind="measured"), found.assign(value=found["random"], kind="simulated")], ignore_index=True)
    frame = frame.drop(columns=["spread", "random"])
    return charts.lines(
        frame,
        question="How long must a run be until its mean can be trusted?",
        caption="Scatter of the mean throughput of stretches of the runs, by their length. Simulated is what slots would do that know nothing of each other.",
        description=narrate.described(frame.assign(label=frame["series"] + " over " + frame["x"].map("{:g} s".format))),
        x_quantity="length", x_unit="s", quantity="scatter of the mean", unit="share", log_x=True, log_y=True, name="measuring-length",
    )  # fmt: skip


def costs(chapter: Chapter) -> charts.Figure | None:
    """What watching costs."""
    logs = [(name, watching.BARE, name) for name in list(watching.LOGS)[1:]]
    profilers = [(name, name, watching.PLAIN) for name in list(watching.PROFILERS)[1:]]
    rows = _ratios(chapter, "logging", "throughput", logs) + _ratios(chapter, "profilers", "time", profilers)
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does it cost to watch?",
        caption="How many times slower: lookups by key with a log of pgbench's, against none; a scan under each profiler, against none. Two rows, “again”, are without as well.",
        description=narrate.described(frame),
        quantity="times slower", unit="", reference=1, reference_label="free", log=True, name="measuring-watching",
    )  # fmt: skip


def asleep(found: dict[str, sleeping.Seen] | None) -> charts.Figure | None:
    """Three instruments on two loads."""
    if found is None:
        return None
    rows = []
    for load, seen in found.items():
        locks = sleeping.in_lock_code(seen)
        for panel, shares in (
            ("CPU profile", pd.Series({"code of the lock manager": locks, "other code": 1 - locks})),
            ("context switches", seen.chains), ("wait events", sleeping.by_event(seen)),
        ):  # fmt: skip
            rows += [{"label": load, "pages": cause, "value": share, "kind": "measured", "panel": panel} for cause, share in shares.items()]
    frame = pd.DataFrame(rows)
    return charts.stacked_pages(
        frame,
        question="Which instrument sees that backends wait for a lock?",
        caption="Clients that update a row each, and clients that all update the same row: shares of CPU samples, of context switches by what the call chain waits for, and of looks at pg_stat_activity.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="share of the samples", facet="panel", name="measuring-asleep",
    )  # fmt: skip


def exaggerated(chapter: Chapter) -> charts.Figure | None:
    """What a change does to pgbench at full speed and to a paced load."""
    rows = []
    for load in (artificial.EXTREME, artificial.PACED):
        pairs = [(change, artificial.named(load, change), artificial.named(load, artificial.PLAIN)) for change in artificial.CHANGES[1:]]
        rows += _ratios(chapter, "loads", "latency", pairs, load)
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How large is a problem, and to whom?",
        caption="Latency of a transaction under each change over that without it, for pgbench at full speed and for an application that asks at a tenth of that.",
        description=narrate.described(frame),
        quantity="latency, relative to no change", unit="", reference=1, reference_label="no change", facet="panel", log=True, name="measuring-artificial",
    )  # fmt: skip
