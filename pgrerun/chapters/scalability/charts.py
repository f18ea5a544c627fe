"""The charts of the chapter: print, simulation, the published run and this run, and their words."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import evidence
from pgrerun.chapters.scalability.experiments import clients, commits, large_machines
from pgrerun.chapters.scalability.experiments.large_machines import TALK
from pgrerun.lab.models import group_commit
from pgrerun.lab.models.lookups import AFTER, BEFORE
from pgrerun.page import charts, narrate
from pgrerun.record import printed

CLIENTS = charts.Axis("clients", log=True)


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
        ),
        CLIENTS,
        charts.Axis("throughput", "transactions/s", zero=True),
    )


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
        ),
        CLIENTS,
        charts.Axis("throughput relative to one client", zero=True),
    )


def by_line(swept: pd.DataFrame) -> charts.Figure:
    """The gain of 9.2 over 9.1 over the cost of a cache line."""
    gains = large_machines.gains_by_line(swept).rename(lambda seconds: seconds * 1e9)
    talk = dict.fromkeys((gains.index[0], gains.index[-1]), TALK["gain"])
    return charts.lines(
        [
            *charts.points(gains, "simulated", series="9.2 over 9.1"),
            *charts.points(talk, "printed", series="9.2 over 9.1"),
        ],
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
        charts.Axis("ratio of throughputs", log=True),
    )


def _reached(gains: pd.Series) -> str:
    """The greatest simulated gain beside the talk's."""
    most, talk = gains.max(), TALK["gain"]
    reached = "reaches" if most >= talk else "does not reach"
    return (
        f"The simulation {reached} the talk's gain of {narrate.number(talk)}: its greatest is"
        f" {narrate.number(most)}, where a cache line takes"
        f" {narrate.number(float(gains.idxmax()))} ns."
    )


def many_commits(simulated: pd.DataFrame) -> charts.Figure:
    """Group commit, simulated, by the time of a flush."""
    ways = simulated.pivot_table(index=["flush", "clients"], columns="way", values="throughput")
    gains = ways[group_commit.TOGETHER] / ways[group_commit.QUEUE]
    rows = []
    for flush in gains.index.unique(0):
        rows += charts.points(gains[flush], "simulated", series=f"a flush takes {flush * 1e3:g} ms")
    return charts.lines(
        rows,
        charts.Words(
            question="What does it cost to let those who wait for a flush go on one by one?",
            caption=(
                "Simulated single inserts on the talk's commit machine: 9.1 lets waiting commits go"
                " on in line, 9.2 all at once. How long its disk took to flush isn't said."
            ),
            name="scalability-commit-simulated",
        ),
        CLIENTS,
        charts.Axis(f"throughput of {AFTER} over that of {BEFORE}"),
    )


def commits_over_clients(chapter: Chapter) -> charts.Figure:
    """Commits per flush and throughput over clients, with the flush as it comes and slowed."""
    panels = {"per flush": "commits per flush", "throughput": "throughput (transactions/s)"}
    as_it_comes = _over_clients(chapter, "commit sweep", panels)
    slowed = _over_clients(chapter, "slowed sweep", panels).assign(series="slowed flush")
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
        ),
        CLIENTS,
        charts.Axis("", log=True),
        own_scales=True,
    )


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
    return charts.compare(chapter.medians(experiment, metric, order), words, axis)


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
    shares = rows["value"] / rows.groupby("label")["value"].transform("sum")
    most = list(shares.groupby(rows["part"]).max().nlargest(SHOWN).index)
    rows["part"] = rows["part"].where(rows["part"].isin(most), OTHERS)
    return charts.stacked(
        _shares(rows, [*most, OTHERS]),
        charts.Words(
            question="What do active backends do at each step of the sweeps?",
            caption=(
                "Shares of the samples. A backend that runs, or waits for a processor, waits for"
                " nothing that PostgreSQL knows. Commits are those of the most clients."
            ),
            name="scalability-waits",
        ),
        charts.Axis("share of active backends"),
    )


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
        ),
        CLIENTS,
        charts.Axis("switches per transaction", zero=True),
        own_scales=True,
    )


def call_chains(chains: pd.DataFrame) -> charts.Figure:
    """What backends were waiting for when they were switched out, as shares."""
    rows = chains.rename(columns={"load": "label", "cause": "part", "switches": "value"})
    causes = rows.groupby("part")["value"].sum().sort_values(ascending=False).index
    return charts.stacked(
        _shares(rows, list(causes)),
        charts.Words(
            question="What do backends wait for when they give up their processor?",
            caption=(
                "Shares of the context switches that perf took, with the most clients, by the"
                " innermost function of the call chain that says what is waited for."
            ),
            name="scalability-chains",
        ),
        charts.Axis("share of context switches"),
    )


def wakeups(woken: pd.DataFrame) -> charts.Figure:
    """Wake-ups per second, then, and by process now."""
    in_print = printed.table("scalability_idle").value
    labels = {
        "wakeups_before": "9.1, all",
        "wakeups_after": "9.2, all",
        "demanded": "to be demanded",
    }
    rates = woken.set_index("role").mean(axis=1)
    return charts.compare(
        [
            *charts.rows(in_print[list(labels)].rename(labels), "printed"),
            *charts.rows(rates, "measured"),
            charts.row("all", "measured", rates.sum()),
        ],
        charts.Words(
            question="How often does an idle server wake up?",
            caption=(
                "Voluntary context switches per second of an idle server's processes, as the kernel"
                " counts them."
            ),
            name="scalability-idle",
        ),
        charts.Axis("wake-ups per second", zero=True),
    )
