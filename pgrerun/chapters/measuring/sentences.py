"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring import evidence
from pgrerun.chapters.measuring.experiments import aa_runs, mechanisms, observers, over_time
from pgrerun.page import narrate
from pgrerun.page.narrate import percent
from pgrerun.page.tables import Table, table
from pgrerun.parameters import time_to_run
from pgrerun.record import printed, statistics


def apparatus(chapter: Chapter) -> Table:
    """What the talk's benchmarks ran on, what runs here, and how long it takes."""
    given, machine = chapter.parameters, chapter.run.environment["machine"]
    said = printed.table("measuring_said")["value"]
    flush = 1e6 * (machine["fdatasync_8k_seconds"] or math.nan)
    server = chapter.run.environment["server"]["version"]
    rows = [
        ("server", "PostgreSQL 9.1 and 9.2devel", server),
        (
            "processors",
            f"{said.cores_first:g} and {said.cores_later:g} cores",
            f"{machine['cpus_usable']} usable",
        ),
        ("load", "pgbench, select-only and TPC-B", "the same, and loads of known size"),
        (
            "length of a run",
            f"about {said.read_run:g} min, {said.write_run:g} for writes",
            f"{given.milliseconds} ms in a pair, {given.seconds:g} s over time",
        ),
        (
            "repeats",
            f"about {said.repeats:g}",
            f"up to {given.pairs} pairs, {given.blocks} for the noise floor",
        ),
        ("one flush of 8 kB", "not said", f"{flush:.0f} µs"),
        ("time to run", "", time_to_run("measuring")),
    ]
    return table(pd.DataFrame(rows, columns=["what", "the talk", "here"]), "Apparatus then and now")


def floor(chapter: Chapter) -> narrate.Sentence:
    """The noise floor of the two equal scans."""
    time, seed = chapter.table("twins", "time"), chapter.parameters.seed
    return narrate.noise(statistics.noise_floor(time[aa_runs.OTHER], time[aa_runs.ONE], seed))


def needed(chapter: Chapter, power: pd.DataFrame) -> narrate.Sentence:
    """How many pairs it takes to find each effect, and what this chapter's own number finds."""
    least, most = evidence.pairs_needed(power), narrate.count(power["pairs"].max(), "pair")
    said = []
    for effect, fewer, pairs in least.itertuples(index=False):
        if pd.isna(pairs):
            takes = f"more than {most}"
        elif fewer:
            takes = f"more than {fewer:.0f} pairs and at most {pairs:.0f}"
        else:
            takes = f"at most {narrate.count(int(pairs), 'pair')}"
        said.append(f"{100 * (effect - 1):.0f} % takes {takes}")
    given = chapter.parameters
    ratios = aa_runs.equal_ratios(chapter)
    reach = aa_runs.smallest(ratios, given.pairs, given.resamples, given.seed)
    reach = math.ceil(1000 * (reach - 1)) / 1000  # rounded up, so that it is found
    return narrate.Sentence(
        f"To be found in {percent(aa_runs.POWER)} of experiments on this machine today, with runs"
        f" of this length, an effect of {'; one of '.join(said)}. A comparison of"
        f" {narrate.count(given.pairs, 'pair')}, the most that this chapter makes below, finds"
        f" effects of {percent(reach)} or more in {percent(aa_runs.POWER)} of"
        " experiments."
    )


def alarms(power: pd.DataFrame) -> narrate.Sentence:
    """False alarms by the number of pairs, and why five pairs have more than one in twenty."""
    nothing = power[power["effect"] == 1].set_index("pairs")
    few = int(nothing.index.min())
    often = ", ".join(
        f"{percent(share)} with {pairs} pairs" for pairs, share in nothing["found"].items()
    )
    return narrate.Sentence(
        f"Where there is no effect, the interval excludes 1 in {often}; at most one in twenty is"
        f" intended. With {few} pairs nothing narrower than the whole range of the ratios is an"
        " interval at all, and it misses 1 whenever all ratios fall on one side:"
        f" {percent(evidence.unavoidable(few))} of the time, whatever the noise. A verdict needs"
        " more than that, an interval outside the margin of interest: that happens in"
        f" {percent(nothing['verdict'].max())} of these experiments at most."
    )


def beside_neighbour(chapter: Chapter, time: pd.DataFrame) -> narrate.Sentence:
    """What pairs and series make of the same runs."""
    found = evidence.pairs_and_series(chapter, time)
    said = " and, ".join(
        f"compared {how}, {narrate.interval(x, against=(1,))} times" for how, x in found.items()
    )
    pairs, series = (x.low <= 1 <= x.high for x in found.values())
    if series:
        shown = (
            "The series includes the truth, 1, so this run doesn't show what interleaving is for."
        )
    elif pairs:
        shown = "The pairs include the truth, 1, and the series doesn't: interleaving is for this."
    else:
        shown = "Neither includes the truth, 1, so this run doesn't show what interleaving is for."
    return narrate.Sentence(f"The same scan seems to take, {said} as long as itself. {shown}")


def faster(chapter: Chapter) -> narrate.Sentence:
    """How many times the query took before each of the fixes."""
    told = [
        narrate.ratio_sentence(
            chapter.ratio("fixes", "time", mechanisms.BEFORE, fix),
            "time",
            f"the query {mechanisms.BEFORE}",
            f"the query with {words}",
        )
        for fix, words in (
            (mechanisms.INDEXED, mechanisms.INDEXED),
            (mechanisms.STATISTICS, "statistics on the expressions and no index"),
        )
    ]
    return narrate.Sentence(" ".join(told))


def dips(watched: pd.DataFrame) -> narrate.Sentence:
    """Writes after a checkpoint began."""
    found = evidence.after_checkpoints(watched)
    began = narrate.count(found["checkpoints"], "checkpoint")
    seconds = narrate.number(evidence.AFTER * float(watched["time"].iloc[1]))
    if not math.isfinite(found["throughput"]):
        return narrate.Sentence(
            f"In the runs of writes {began} began, and nothing can be said of what follows one."
        )
    return narrate.Sentence(
        f"In the runs of writes {began} began; in the {seconds} s after each, a"
        f" transaction writes {narrate.number(found['wal'], 2)} times as much WAL as at all other"
        f" times, and throughput is {narrate.number(found['throughput'], 2)} times as high,"
        " where a fall was foretold."
    )


def lengths(chapter: Chapter) -> narrate.Sentence:
    """How long runs must be here for one per cent."""
    found = {load: chapter.median("over time", "length", load) for load in over_time.LOADS}
    said = " and ".join(
        f"{narrate.number(x.estimate / 60, 1)} minutes for {load}" for load, x in found.items()
    )
    return narrate.Sentence(
        "By the scatter within a run, its mean throughput would be within"
        f" {percent(over_time.WITHIN)} of the truth after {said} (medians over"
        f" {found[over_time.READS].n} runs of each). That is a lower bound: swings slower than the"
        " run itself don't show in it."
    )


def counting(watched: pd.DataFrame) -> narrate.Sentence:
    """How much of the scatter is that of counting few transactions."""
    mean = watched.groupby("load", sort=False)["throughput"].mean()
    slot = float(watched["time"].iloc[1])  # of runs put end to end
    said = " and ".join(
        f"{percent((throughput * slot) ** -0.5)} ({load})" for load, throughput in mean.items()
    )
    return narrate.Sentence(
        f"Throughput is counted in slots of {narrate.number(slot)} s. Transactions that"
        f" end independently of each other would scatter by {said} because only so many fall into a"
        " slot; what goes beyond that is the machine's and the server's."
    )


def perf_cost(chapter: Chapter) -> narrate.Sentence:
    """What perf costs by itself, and the others beside it."""
    cost = {
        name: chapter.ratio("profilers", "time", name, observers.UNWATCHED)
        for name in observers.PROFILERS
        if name != observers.UNWATCHED and name in chapter.table("profilers", "time")
    }
    perf = cost.pop(observers.PERF)
    said = "; ".join(f"{name}, {narrate.interval(x, against=(1,))}" for name, x in cost.items())
    return (
        narrate.ratio_sentence(
            perf,
            "time",
            "the scan under perf with call graphs, by the kernel's timer,",
            "the scan alone",
        )
        + f"The same ratio for each of the others: {said}."
    )
