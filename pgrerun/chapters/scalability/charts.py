"""The charts of the chapter: print, simulation, the published run and this run, and their words."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import evidence
from pgrerun.chapters.scalability.experiments import (
    clients,
    commits,
    large_machines,
    load,
    locks,
)
from pgrerun.chapters.scalability.experiments.large_machines import TALK
from pgrerun.lab.models.lookups import AFTER, BEFORE
from pgrerun.page import charts, narrate
from pgrerun.record import printed

CLIENTS = charts.Axis("clients", log=True)
SLOWED = "slowed flush"


def _over_clients(chapter: Chapter, experiment: str, metrics: Mapping[str, str]) -> pd.DataFrame:
    """Rows of a sweep over clients: medians of `metrics` (with their panels) by clients (`x`).

    What a variant's name has before that number is its series.
    """
    rows = chapter.medians(experiment, metrics)
    if rows.empty:  # neither this run nor the published one has them: as if set aside
        chapter.table(experiment, next(iter(metrics)))
    rows = rows[rows["label"] != clients.AGAIN]
    names = rows["label"].str.rpartition(", ")  # "as it comes, 16 clients"
    x = names[2].str.split().str[0].astype(int)
    return rows.assign(series=names[0], x=x).drop(columns="label")


def print_of_the_talk() -> charts.Figure:
    """What the talk claims of many clients, as ratios."""
    read, write = printed.table("scalability_read").value, printed.table("scalability_write").value
    ratios = {
        "lookups, 32 clients": read["gain"],
        "writers, 32 clients": 1 + write["gain_percent"] / 100,
        "inserts, 250 clients": write["commit_gain_low"],
        "64 processors over one": read["speedup"],
    }
    return charts.compare(
        charts.rows(ratios, "printed"),
        charts.Words(
            question=(
                "How much more throughput did PostgreSQL 9.2 bring, and how far does it scale?"
            ),
            caption=(
                "The talk's ratios: PostgreSQL 9.2 over 9.1 for three loads, and 64 processors over"
                " one. Of six to eight times the lower is drawn."
            ),
            name="scalability-print",
        ),
        charts.Axis("ratio of throughputs", log=True),
        reference=charts.Reference(1, "no gain"),
    )


def sweep(chapter: Chapter, experiment: str, what: str) -> charts.Figure:
    """Throughput over clients, with the law that fits it, if one does."""
    rows = _over_clients(chapter, experiment, {"throughput": ""})
    beside = {"read": _again, "write": _bends}[experiment]
    fit = "fitted to this run"
    if (law := evidence.law(chapter, experiment)) is not None:
        if evidence.misses(chapter, law, experiment) is not None:
            fit = "which doesn't fit this run"
        steps = sorted(rows["x"].unique())
        predicted = dict(zip(steps, law.predict(steps), strict=True))
        rows = charts.together([rows, *charts.points(predicted, "simulated", series="")])
    return charts.lines(
        rows.sort_values(["kind", "x"]),
        charts.Words(
            question=f"How does the throughput of {what} change with the number of clients?",
            caption=(
                "Medians with intervals. The dotted line is a model's: the universal scalability"
                f" law, {fit}."
            ),
            name=f"scalability-{experiment}",
            result=lambda frame: _peak(frame) + beside(chapter),
        ),
        CLIENTS,
        charts.Axis("throughput", "transactions/s", zero=True),
    )


def _peak(frame: pd.DataFrame) -> str:
    """How throughput goes over clients: its greatest, and what is left with the most clients."""
    run, rows = charts.own(frame)
    line = rows.sort_values("x")
    top, last = int(line["value"].to_numpy().argmax()), len(line) - 1
    ends = [(0, "from"), *([(top, "to its greatest,")] if 0 < top < last else []), (last, "to")]
    told = [
        f"{way} {narrate.interval(charts.value_of(line.iloc[at]), 'transactions/s')} with"
        f" {narrate.count(line['x'].iloc[at], 'client')}"
        for at, way in ends
    ]
    return f"{run}, throughput goes {', '.join(told)}."


def _again(chapter: Chapter) -> str:
    """What the sweep makes of the crowd, with the few clients and with as many again.

    That is why the claim about a crowd has an experiment of its own.
    """
    few, most = load.one_per_processor(chapter), load.client_counts(chapter)[-1]
    pairs = {name: (name, load.by_clients(most)) for name in (load.by_clients(few), clients.AGAIN)}
    found = chapter.ratios("read", "throughput", pairs)
    if few == most or len(found) < len(pairs):
        return ""
    first, again = (
        narrate.interval(charts.value_of(row), "times", against=(1,))
        for _, row in charts.own(found)[1].iterrows()
    )
    return (
        f" In these runs throughput with {narrate.count(few, 'client')} is {first} that with"
        f" {narrate.count(most, 'client')}, and {again} where the {few} are measured once more. The"
        " verdict on a crowd rests on an experiment of its own, whose runs are up to four times as"
        " long."
    )


def _bends(chapter: Chapter) -> str:
    """Where the throughput of either load comes near its greatest, which was expected alike."""
    runs, at = zip(
        *(_bend(_over_clients(chapter, name, {"throughput": ""})) for name in ("read", "write")),
        strict=True,
    )
    if runs[0] != runs[1]:
        return ""
    lookups, writers = (narrate.count(number, "client") for number in at)
    near = f"{100 * evidence.NEAR:.0f} % of the greatest is reached with"
    if lookups == writers:
        return f" By medians {near} {writers}, and so it is by lookups, as expected."
    return (
        f" By medians {near} {writers}, and by lookups with {lookups}, where the same number was"
        " expected."
    )


def _bend(rows: pd.DataFrame) -> tuple[str, int]:
    """Whose run it is, and the fewest clients near the greatest throughput."""
    run, line = charts.own(rows)
    return run, int(line.loc[line["value"] >= evidence.NEAR * line["value"].max(), "x"].min())


def many_processors(simulated: pd.DataFrame) -> charts.Figure:
    """The talk's first graph, simulated."""
    machine = simulated[simulated["processors"] == large_machines.PROCESSORS]
    throughput = machine.groupby(["release", "clients"], sort=False)["throughput"].median()
    points = []
    for release in throughput.index.unique(0):
        relative = throughput[release] / throughput[release, 1]
        points += charts.points(relative, "simulated", series=release)
    return charts.lines(
        points,
        charts.Words(
            question="What would the talk's releases do on its machine of 32 processors?",
            caption=(
                "Throughput over that of one client. The costs of a lookup, a lock and a sleep are"
                " measured here, that of a cache line is the one that comes nearest to the talk's"
                " gain."
            ),
            name="scalability-processors",
            result=_releases,
        ),
        CLIENTS,
        charts.Axis("throughput relative to one client", zero=True),
    )


def _releases(frame: pd.DataFrame) -> str:
    """How far each release comes with more clients, and what is left with the most."""
    told = []
    for release, line in frame.sort_values("x").groupby("series", sort=False):
        top, last = line.loc[line["value"].idxmax()], line.iloc[-1]
        most, rest = (
            f"{narrate.number(row['value'], 1)} times with {narrate.count(row['x'], 'client')}"
            for row in (top, last)
        )
        left = f" and has {rest}" if top["x"] < last["x"] else ""
        told.append(f"{release} reaches {most}{left}")
    return f"In the simulation, compared with one client, {'; '.join(told)}."


def by_line(swept: pd.DataFrame) -> charts.Figure:
    """The gain of 9.2 over 9.1 over the cost of a cache line."""
    gains = large_machines.gains_by_line(swept).rename(lambda seconds: seconds * 1e9)
    return charts.lines(
        charts.points(gains, "simulated"),
        charts.Words(
            question="Does the simulation reach the talk's gain?",
            caption=(
                "On 32 processors with as many clients, over the time that a cache line takes from"
                " one processor to another; all other costs are measured here."
            ),
            result=lambda _: _reached(gains),
            name="scalability-line-cost",
        ),
        charts.Axis("time for a cache line", "ns"),
        charts.Axis("throughput of 9.2 over that of 9.1", log=True),
        reference=charts.Reference(TALK["gain"], "the talk's gain"),
    )


def _reached(gains: pd.Series) -> str:
    """The greatest simulated gain beside the talk's."""
    most, talk = gains.max(), TALK["gain"]
    reached = "reaches" if most >= talk else "does not reach"
    return (
        f"The simulation {reached} the talk's gain of {narrate.number(talk)}: its greatest is"
        f" {narrate.number(most, 2)}, where a cache line takes"
        f" {narrate.number(float(gains.idxmax()))} ns."
    )


def many_commits(simulated: pd.DataFrame) -> charts.Figure:
    """Group commit, simulated, by the time of a flush."""
    gains = evidence.queue_gains(simulated)
    rows = []
    for flush in gains.index.unique(0):
        rows += charts.points(gains[flush], "simulated", series=_milliseconds(flush))
    return charts.lines(
        rows,
        charts.Words(
            question="What does it cost to let those who wait for a flush go on one by one?",
            caption=(
                "Simulated single inserts on the talk's commit machine, a line for each time that"
                " a flush takes: 9.1 lets waiting commits go on in line, 9.2 all at once. How long"
                " its disk took to flush isn't said."
            ),
            name="scalability-commit-simulated",
            result=lambda _: _queued(gains),
        ),
        CLIENTS,
        charts.Axis(f"throughput of {AFTER} over that of {BEFORE}"),
        reference=charts.Reference(1),
    )


def _milliseconds(flush: float) -> str:
    return f"{narrate.number(flush * 1e3)} ms"


def _queued(gains: pd.Series) -> str:
    """The greatest gain for each time of a flush, where 9.2 falls behind, and the talk's gain."""
    most = [
        f"{narrate.number(of_flush.max(), 2)} times with a flush of {_milliseconds(flush)}"
        for flush, of_flush in gains.groupby(level="flush")
    ]
    behind = [
        f"{_milliseconds(flush)} (down to {narrate.number(of_flush.min(), 2)} times)"
        for flush, of_flush in gains.groupby(level="flush")
        if of_flush.min() < 1
    ]
    slower = f" It falls behind 9.1 with a flush of {narrate.listed(behind)}." if behind else ""
    crowd = gains.xs(commits.TALK_CLIENTS, level="clients")
    reached = "One" if crowd.max() >= evidence.COMMIT_GAIN.low else "None"
    return (
        f"In the simulation, 9.2 does at most so many times as much as 9.1: {narrate.listed(most)}."
        f"{slower} {reached} of these flushes gives the talk's"
        f" {narrate.size(evidence.COMMIT_GAIN)} times with"
        f" {narrate.count(commits.TALK_CLIENTS, 'client')}."
    )


def commits_over_clients(chapter: Chapter) -> charts.Figure:
    """Commits per flush and throughput over clients, with the flush as it comes and slowed."""
    panels = {"per flush": "commits per flush", "throughput": "throughput (transactions/s)"}
    as_it_comes = _over_clients(chapter, "commit sweep", panels)
    slowed = _over_clients(chapter, "slowed sweep", panels).assign(series=SLOWED)
    as_it_comes = as_it_comes[as_it_comes["series"] == commits.PLAIN]
    return charts.lines(
        charts.together([as_it_comes, slowed]).sort_values(["panel", "series", "kind", "x"]),
        charts.Words(
            question="How many commits does one flush of the WAL carry?",
            caption=(
                "Single inserts over clients. One server's flush was made slow on purpose, by a"
                " library that waits in front of it."
            ),
            name="scalability-commits",
            result=_carried,
        ),
        CLIENTS,
        charts.Axis("", log=True),
        own_scales=True,
    )


def _carried(frame: pd.DataFrame) -> str:
    """Commits of a flush and throughput, with the fewest and the most clients, of both flushes."""
    run, rows = charts.own(frame)
    told = []
    for panel, what, unit in (
        ("commits per flush", "commits per flush go", ""),
        ("throughput (transactions/s)", "throughput goes", " transactions/s"),
    ):
        ways = []
        for name, line in rows[rows["panel"] == panel].groupby("series", sort=False):
            ends = line.sort_values("x").iloc[[0, -1]]
            first, last = (narrate.interval(charts.value_of(end)) for _, end in ends.iterrows())
            ways.append(f"from {first} to {last}{unit} ({name})")
        told.append(f"{what} {narrate.listed(ways)}")
    few, most = (narrate.number(end) for end in (rows["x"].min(), rows["x"].max()))
    return f"{run}, between {few} and {most} clients, {', and '.join(told)}."


# by experiment: metric, axis, question and caption of a chart of all its variants
COMPARED = {
    "locks": (
        "throughput",
        charts.Axis("throughput", "transactions/s", zero=True),
        charts.Words(
            question="What do locks cost that overflow the fast path?",
            caption=(
                "A transaction that locks many relations: all on the fast path, most in the lock"
                " table, or pushed off by another session's strong locks."
            ),
            name="scalability-locks",
        ),
    ),
    "cache lines": (
        "time",
        charts.Axis("time for a word", "ns", log=True),
        charts.Words(
            question="From which distance do two processors leave each other alone?",
            caption=(
                "Two processes add to words so many bytes apart; and one scans a word of many"
                " structures while the other changes their neighbours."
            ),
            name="scalability-lines",
        ),
    ),
}


def compared(chapter: Chapter, experiment: str) -> charts.Figure:
    """Every variant of an experiment, with its interval."""
    metric, axis, words = COMPARED[experiment]
    [(_, observed), *_] = chapter.by_provenance(experiment)
    order = {variant: variant for variant in observed["variant"]}
    results = {"locks": _cost_of_overflow, "cache lines": _apart}
    words = replace(words, result=lambda _: results[experiment](chapter))
    return charts.compare(chapter.medians(experiment, metric, order), words, axis)


def _cost_of_overflow(chapter: Chapter) -> str:
    """Whether throughput on the fast path is higher than off it."""
    off = {
        "with most locks in the lock table": locks.TABLE,
        "beside a strong lock": locks.HELD,
    }
    pairs = {words: (locks.FAST, variant) for words, variant in off.items()}
    run, rows = charts.own(chapter.ratios("locks", "throughput", pairs))
    told = []
    for _, row in rows.iterrows():
        cost = (
            "which is a cost"
            if row["low"] > 1
            else "so being off it costs nothing"
            if row["high"] < 1
            else "so no cost can be told from noise"
        )
        told.append(f"{narrate.interval(charts.value_of(row))} times that {row['label']}, {cost}")
    return f"{run}, throughput on the fast path is {'; and '.join(told)}."


def _apart(chapter: Chapter) -> str:
    """What a word costs at each distance over what it costs at the farthest."""
    *near, far = (f"{distance} bytes apart" for distance in large_machines.DISTANCES)
    pairs = {name: (name, far) for name in near}
    pairs["scan"] = large_machines.SPREAD, large_machines.UNDISTURBED
    run, rows = charts.own(chapter.ratios("cache lines", "time", pairs))
    times = {
        row["label"]: narrate.interval(charts.value_of(row), "times", against=(1,))
        for _, row in rows.iterrows()
    }
    told = narrate.listed([f"{times[name]} as long {name}" for name in near])
    return (
        f"{run}, a word takes {told} as {far}. Scanning words takes {times['scan']} as long beside"
        " a process that changes their neighbours as beside one that does nothing."
    )


SHOWN, OTHERS = 6, "other waits"  # kinds of wait that have a colour of their own, and the rest


def waits(read: pd.DataFrame, written: pd.DataFrame) -> charts.Figure:
    """What active backends do at the end of each sweep, as shares: run, or wait for what."""
    by_load = [
        read.assign(label=[f"lookups, {narrate.count(int(n), 'client')}" for n in read["clients"]]),
        written.assign(label=written["load"] + " commits"),
    ]
    rows = pd.concat(by_load, ignore_index=True).rename(columns={"backends": "value"})
    rows["part"] = rows["type"] + ": " + rows["event"]
    rows["part"] = rows["part"].mask(rows["type"] == "CPU", "on CPU or runnable")
    share = rows["value"] / rows.groupby("label")["value"].transform("sum")
    most = list(share.groupby(rows["part"]).max().nlargest(SHOWN).index)
    rows["part"] = rows["part"].where(rows["part"].isin(most), OTHERS)
    shares = _shares(rows, [*most, OTHERS])
    return charts.stacked(
        shares,
        charts.Words(
            question="What do active backends do at each step of the sweeps?",
            caption=(
                "Shares of the samples. A backend that runs, or waits for a processor, waits for"
                " nothing that PostgreSQL knows. Commits are those of the most clients."
            ),
            name="scalability-waits",
            result=lambda _: _most_of_each(shares),
        ),
        charts.Axis("share of active backends"),
    )


def _most_of_each(stacked: pd.DataFrame) -> str:
    """The largest part of each bar of shares."""
    most = stacked.loc[stacked.groupby("label", sort=False)["value"].idxmax()]
    told = (
        f"{row.label}, {row.part} ({narrate.number(100 * row.value, 0)} %)"
        for row in most.itertuples()
    )
    return f"In this run, the largest part of each bar: {'; '.join(told)}."


def _shares(rows: pd.DataFrame, parts: list[str]) -> pd.DataFrame:
    """Stacked bars of the shares of each label's total: bars as they come, segments as `parts`."""
    totals = rows.pivot_table(index="label", columns="part", values="value", aggfunc="sum")
    shares = totals.div(totals.sum(axis=1), axis=0).reindex(rows["label"].unique(), columns=parts)
    stacked = shares.reset_index().melt(id_vars="label", var_name="part").dropna()
    order = stacked["label"].map({label: n for n, label in enumerate(shares.index)})
    return stacked.loc[order.sort_values(kind="stable").index].assign(kind="measured")


def switches(chapter: Chapter) -> charts.Figure:
    """Sleeps and preemptions per transaction over clients, in both sweeps."""
    series = {"voluntary": "sleeps", "involuntary": "preemptions"}
    frames = []
    for experiment, panel in clients.SWEEPS.items():
        rows = _over_clients(chapter, experiment, series)
        frames.append(rows.assign(series=rows["panel"], panel=panel))
    return charts.lines(
        charts.together(frames).sort_values(["panel", "series", "kind", "x"]),
        charts.Words(
            question="How often does a backend give up its processor in a transaction?",
            caption=(
                "Voluntary context switches (sleeps) and involuntary ones (preemptions), as the"
                " kernel counts them while the sweeps are timed."
            ),
            name="scalability-switches",
            result=_switched,
        ),
        CLIENTS,
        charts.Axis("switches per transaction", zero=True),
        own_scales=True,
    )


def _switched(frame: pd.DataFrame) -> str:
    """Sleeps and preemptions of a transaction, with the fewest and the most clients."""
    run, rows = charts.own(frame)
    told = []
    for panel, of_load in rows.groupby("panel", sort=False):
        ways = []
        for way, line in of_load.groupby("series", sort=False):
            ends = line.sort_values("x").iloc[[0, -1]]
            first, last = (narrate.interval(charts.value_of(end)) for _, end in ends.iterrows())
            ways.append(f"{way} from {first} to {last}")
        few, most = (narrate.number(end) for end in (of_load["x"].min(), of_load["x"].max()))
        told.append(f"{panel}, {few} to {most} clients, {' and '.join(ways)}")
    return f"{run}, per transaction of {'; of '.join(told)}."


def call_chains(chains: pd.DataFrame) -> charts.Figure:
    """What backends were waiting for when they were switched out, as shares."""
    rows = chains.rename(columns={"load": "label", "cause": "part", "switches": "value"})
    causes = rows.groupby("part")["value"].sum().sort_values(ascending=False).index
    shares = _shares(rows, list(causes))
    return charts.stacked(
        shares,
        charts.Words(
            question="What do backends wait for when they give up their processor?",
            caption=(
                "Shares of the context switches that perf took, with the most clients, by the"
                " innermost function of the call chain that says what is waited for."
            ),
            name="scalability-chains",
            result=lambda _: _most_of_each(shares),
        ),
        charts.Axis("share of context switches"),
    )


def wakeups(woken: pd.DataFrame) -> charts.Figure:
    """Wake-ups per second, then, and by process now."""
    in_print = printed.table("scalability_idle").value
    everybody, together = "all together", evidence.wakeup_rate(woken)
    said = {"wakeups_after": everybody, "demanded": "to be demanded"}
    of_old = narrate.number(in_print["wakeups_before"])
    now, then = narrate.interval(together), narrate.number(in_print["wakeups_after"])
    return charts.compare(
        [
            charts.row(everybody, "measured", together),
            *charts.rows(in_print[list(said)].rename(said), "printed"),
            *charts.rows(woken.set_index("role").mean(axis=1), "measured"),
        ],
        charts.Words(
            question="How often does an idle server wake up?",
            caption=(
                "Voluntary context switches per second of an idle server's processes, as the kernel"
                f" counts them. The talk's {of_old} of 9.1 isn't drawn."
            ),
            name="scalability-idle",
            result=lambda _: (
                f"In this run, the processes of an idle server wake up {now} times per second, all"
                f" together; {then} is printed for 9.2, and {of_old} for 9.1."
            ),
        ),
        charts.Axis("wake-ups per second", zero=True),
    )
