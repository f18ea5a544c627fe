"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

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
from pgrerun.lab.models.lookups import AFTER, BEFORE
from pgrerun.page import narrate, tables
from pgrerun.parameters import time_to_run
from pgrerun.record import printed, statistics

BEYOND = 1.1  # switches for each message: fewer are the messages' own
_CROWD = 0.25  # of the clients: so many more that ask for a spinlock are a collapse
_SWEEPS = {"lookups": "read", "writers": "write"}  # the experiment of each load
LONG = 0.1  # share of the active backends in a wait that is worth naming


def apparatus(chapter: Chapter) -> tables.Table:
    """The talk's machines and this one."""
    read, write = printed.table("scalability_read").value, printed.table("scalability_write").value
    machine, given = chapter.run.environment["machine"], chapter.parameters
    flush = machine["fdatasync_8k_seconds"]
    rows = [
        (
            "system",
            "PostgreSQL 9.1 and 9.2",
            f"PostgreSQL {chapter.run.environment['server']['version']}",
        ),
        (
            "processors",
            (
                f"{read['cores']:g} (AMD Opteron 6128); {read['cores_large']:g};"
                f" {write['commit_cores']:g} with {write['commit_threads']:g} threads"
            ),
            f"{machine['cpus_usable']} ({machine['cpu_model']}); more by simulation",
        ),
        (
            "disk",
            "a slow one, without a write cache",
            f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown",
        ),
        ("load", "pgbench, primary key lookups; pgbench; single inserts", "the same"),
        (
            "runs",
            "three, of five minutes (reads) or thirty (writes)",
            f"up to {given.pairs} interleaved, of {given.transactions:,} lookups for each client",
        ),
        ("time to run", "", time_to_run("scalability")),
    ]
    frame = pd.DataFrame(rows, columns=["", "2012", "this run"])
    return tables.table(frame, "Apparatus then and now")


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor from the number of clients that ran twice."""
    swept, number = chapter.table("read", "throughput"), load.one_per_processor(chapter)
    return narrate.noise(
        statistics.noise_floor(swept[load.by_clients(number)], swept[clients.AGAIN])
    )


def law(chapter: Chapter, fitted: statistics.USL, what: str) -> narrate.Sentence:
    """What the universal scalability law makes of a sweep, or that it doesn't fit it."""
    if (most := evidence.misses(chapter, fitted, _SWEEPS[what])) is not None:
        return narrate.Sentence(
            f"The universal scalability law doesn't fit the {what}: throughput is greatest with"
            f" {narrate.count(most, 'client')}, and the law's peak lies beyond the next numbers of"
            " clients that were measured. So its contention and coherence mean nothing here."
        )
    contention, coherence = (
        narrate.interval(part.times(100), "%") for part in (fitted.sigma, fitted.kappa)
    )
    return narrate.Sentence(
        f"The universal scalability law, fitted to the {what}: contention {contention}, coherence"
        f" {coherence} per client. {_peak(fitted.peak)}"
    )


def _peak(peak: statistics.Interval) -> str:
    """Where the law puts the peak, as far as its interval has ends."""
    if peak.estimate <= 1:
        return "It finds no peak beyond one client."
    if peak.estimate == float("inf"):
        return "It finds no peak."
    if peak.high == float("inf"):
        return (
            f"It puts the peak at {narrate.count(round(peak.estimate), 'client')}, but a curve"
            " without a peak fits as well."
        )
    if peak.low < 1:
        return f"It puts the peak at {narrate.number(peak.high, 1)} clients at most."
    return f"It puts the peak at {narrate.interval(peak)} clients."


def knee(waits: pd.DataFrame) -> narrate.Sentence:
    """What most backends do at the largest number of clients, and where the curve bends."""
    rows = _end(waits).sort_values("backends", ascending=False)
    running, waiting = rows[rows["type"] == "CPU"], rows[rows["type"] != "CPU"]
    inside = waiting.loc[waiting["type"] != "Client", "backends"].sum()
    on_cpu = running["backends"].sum()
    said = (
        f"With {narrate.count(int(rows['clients'].iloc[0]), 'client')}, on average"
        f" {narrate.number(rows['backends'].sum(), 1)} backends are active, and"
        f" {narrate.number(on_cpu, 1)} of them are on CPU or runnable, on"
        f" {narrate.count(load.processors(), 'processor')}"
    )
    if on_cpu <= 2 * inside:
        cause = "the knee is a wait inside PostgreSQL"
    elif on_cpu >= load.processors():
        cause = "the knee is the number of processors, which pgbench shares with them"
    else:
        cause = (
            "few wait inside PostgreSQL, and fewer are at work than there are processors, so the"
            " knee lies outside of it, with pgbench, which shares the processors, or on the way"
        )
    if waiting.empty:
        return narrate.Sentence(f"{said}; none waits for anything that PostgreSQL knows: {cause}.")
    most = " and ".join(
        f"{row.type}:{row.event} ({narrate.number(row.backends, 2)})"
        for row in waiting.head(2).itertuples()
    )
    return narrate.Sentence(f"{said}; the others wait, most for {most}: {cause}.")


def _end(waits: pd.DataFrame) -> pd.DataFrame:
    """The rows of what ends a sweep: the most clients, and of writers commits that don't wait."""
    if "clients" in waits:
        return waits[waits["clients"] == waits["clients"].max()]
    return waits[waits["load"] == clients.ASYNCHRONOUS]


def switched(
    chapter: Chapter, sweep: str, counted: pd.DataFrame, waits: pd.DataFrame
) -> narrate.Sentence:
    """A sweep's context switches at its first step, where it bends and at its last.

    `counted` is what `clients.switches_per_transaction` counted in the sweep; it is read beside
    the wait events of the last step (`waits`).
    """
    bend = evidence.bend(chapter, sweep)
    shown = [counted["clients"].min(), bend, counted["clients"].max()]
    steps = [
        f"with {narrate.count(row.clients, 'client')} a backend sleeps"
        f" {narrate.interval(row.voluntary)} times and is preempted"
        f" {narrate.interval(row.involuntary)} times, for"
        f" {narrate.number(row.messages.estimate, 1)} messages"
        for row in counted[counted["clients"].isin(shown)].itertuples()
    ]
    gain = chapter.ratio(sweep, "throughput", load.by_clients(bend), load.by_clients(1))
    often, beyond = _beyond(counted.iloc[-1])
    told = [
        f"The throughput of {clients.SWEEPS[sweep]} comes near its greatest with"
        f" {narrate.count(bend, 'client')}.",
        f"In a transaction, {'; '.join(steps)}.",
        _more_than_linear(gain, bend, counted),
        beyond,
        _inside(waits, often),
    ]
    return narrate.Sentence(" ".join(filter(None, told)))


def _more_than_linear(gain: statistics.Interval, many: int, counted: pd.DataFrame) -> str:
    """That `many` clients do more than so many times the work of one, and what of it is told.

    That is whether the switches tell why; empty if they don't do more.
    """
    if not gain.low > many > 1:
        return ""
    told = f"That many do {narrate.interval(gain)} times what one does, which is more than linear"
    sleeps = counted.set_index("clients")["voluntary"]
    if sleeps[many].high < sleeps[1].low:
        return (
            f"{told}: one client and its backend take turns, and a processor that was put to sleep"
            " has to be woken at every turn; with more of them it sleeps less often."
        )
    return f"{told}, and not because backends sleep less often."


def _beyond(last: pd.Series) -> tuple[bool, str]:
    """Whether a backend sleeps more often than messages come, and what the switches say.

    Of the most clients, whose counts are `last`.
    """
    messages, sleeps = last["messages"].estimate, last["voluntary"].estimate
    usual = BEYOND * messages
    often = last["voluntary"].low > usual
    few = "no" if sleeps <= messages else "hardly"
    if often:
        said = "there are more sleeps than messages: the others are waits inside PostgreSQL."
    elif last["voluntary"].low + last["involuntary"].low > usual:
        said = (
            f"there are {few} more sleeps than messages, but more switches: the processor is taken"
            " from backends that could go on."
        )
    else:
        said = (
            f"there are {few} more sleeps than messages, and few preemptions: backends sleep for"
            " little but the next message."
        )
    return often, f"With the most clients {said}"


def _inside(waits: pd.DataFrame, often: bool) -> str:
    """What the wait events say of the most clients.

    And what that makes of sleeps inside PostgreSQL that are many (`often`) or few.
    """
    rows = _end(waits)
    inside = rows[~rows["type"].isin(["CPU", "Client"])].sort_values("backends", ascending=False)
    share = inside["backends"].sum() / rows["backends"].sum()
    cause = {
        (True, True): "Both name the same cause.",
        (True, False): "So a backend has many short waits.",
        (False, True): "So a backend has few waits, but long ones.",
        (False, False): (
            "Neither shows much waiting inside PostgreSQL: backends wait for their client, or for a"
            " processor."
        ),
    }[often, bool(share >= LONG)]
    if inside.empty:
        return (
            "In the samples of wait events, no active backend waits inside PostgreSQL then."
            f" {cause}"
        )
    most = inside.iloc[0]
    return (
        f"In the samples of wait events, {narrate.number(100 * share, 1)} % of the active backends"
        f" wait inside PostgreSQL then, most of them for {most['type']}:{most['event']}. {cause}"
    )


def chains(switches: pd.DataFrame) -> narrate.Sentence:
    """What perf's call chains say that backends wait for beside their clients and a processor."""
    told = []
    outside = ["the client", clients.PREEMPTED, "other"]
    for name, rows in switches.groupby("load", sort=False):
        total, inside = rows["switches"].sum(), rows[~rows["cause"].isin(outside)]
        most = f", most often for {inside.iloc[0]['cause']}" if len(inside) else ""
        share = 100 * inside["switches"].sum() / total
        told.append(
            f"{narrate.number(share, 1)} % of the {name}' {narrate.count(total, 'switch')} taken"
            f" are waits inside PostgreSQL{most}"
        )
    return narrate.Sentence(f"By their call chains, {', and '.join(told)}.")


def constants(chapter: Chapter) -> narrate.Sentence:
    """The measured costs that the simulation runs on."""
    measured = pd.DataFrame(large_machines.calibrated(chapter)) * 1e6
    told = {
        name: narrate.interval(statistics.median(values), "µs") for name, values in measured.items()
    }
    return narrate.Sentence(
        f"Measured here: a lookup's work takes {told['work']} of a processor, a visit of the lock"
        f" table {told['visit']}, a cache line from another processor {told['line']}, and a sleep"
        f" with its end {told['switch']} of processor time, {told['rouse']} until the sleeper runs."
    )


def line(chapter: Chapter, swept: pd.DataFrame) -> narrate.Sentence:
    """What a cache line costs here, and what it must have cost there."""
    gains, there = large_machines.gains_by_line(swept), large_machines.talks_line(swept)
    measured = [costs.line * 1e9 for costs in large_machines.calibrated(chapter)]
    talks = large_machines.TALK["gain"]
    reached = "" if gains.max() >= talks else " No time that was tried reaches the talk's gain."
    return narrate.Sentence(
        "Fetching a cache line from another processor takes"
        f" {narrate.interval(statistics.median(measured), 'ns')} here. With"
        f" {narrate.number(there * 1e9)} ns, which is used from here on, the simulated gain is"
        f" {narrate.number(gains[there], 1)}, nearest to the talk's"
        f" {narrate.number(talks)}.{reached}"
    )


def asking(swept: pd.DataFrame) -> narrate.Sentence:
    """How many clients ask for one spinlock at a time, where the gain over the lines changes."""
    gains = large_machines.gains_by_line(swept)
    after, before = (
        swept[swept["release"] == release].set_index("line").sort_index()
        for release in (AFTER, BEFORE)
    )
    told = [
        "Each client that asks for a spinlock takes its cache line from the holder, so a spinlock"
        " that many ask for is held for longer, and more ask."
    ]
    step = after["asking"].diff().fillna(0.0)
    if step.max() >= _CROWD * after["clients"].max():
        here = step.idxmax()
        last = after.index[after.index.get_loc(here) - 1]
        told.append(
            f"In 9.2, {_crowd(after.loc[last])}, with {_nanoseconds(last)}, and"
            f" {narrate.number(after.loc[here, 'asking'], 1)} ask for that of the"
            f" {after.loc[here, 'spinlock']} with {_nanoseconds(here)}: there the gain falls from"
            f" {narrate.number(gains[last], 1)} to {narrate.number(gains[here], 1)}."
        )
    else:
        most = after["asking"].idxmax()
        told.append(f"In 9.2, at most {_crowd(after.loc[most])}, with {_nanoseconds(most)}.")
    most = before["asking"].idxmax()
    told.append(
        "In 9.1, whose clients sleep in front of the lock table before they get there, at most"
        f" {_crowd(before.loc[most])}, with {_nanoseconds(most)}, where the gain is"
        f" {narrate.number(gains[most], 1)}."
    )
    return narrate.Sentence(" ".join(told))


def _crowd(point: pd.Series) -> str:
    asking = narrate.number(point["asking"], 1)
    return (
        f"{asking} of {point['clients']} clients on average ask for the spinlock of the"
        f" {point['spinlock']} at a time"
    )


def _nanoseconds(line: float) -> str:
    return f"{narrate.number(line * 1e9)} ns"


def per_flush(chapter: Chapter) -> narrate.Sentence:
    """Commits that one flush carries, from one client to many, as it comes and slowed."""
    sizes = commits.sizes(chapter)
    told = []
    for experiment, words in (("commit sweep", "as it comes"), ("slowed sweep", "slowed")):
        each = (
            chapter.median(experiment, "per flush", commits.swept(commits.PLAIN, number))
            for number in sizes
        )
        said = ", ".join(narrate.interval(found) for found in each)
        told.append(f"{said} where the flush is {words}")
    return narrate.Sentence(
        f"Commits that one flush carries with {', '.join(map(str, sizes))} clients:"
        f" {'; '.join(told)}."
    )


def queue(simulated: pd.DataFrame) -> narrate.Sentence:
    """At which of the simulated flush times the talk's gain comes out, if at any."""
    gains = evidence.queue_gains(simulated).xs(commits.TALK_CLIENTS, level="clients")
    each = ", ".join(
        f"{narrate.number(gain, 2)} where a flush takes {narrate.number(flush * 1e3)} ms"
        for flush, gain in gains.items()
    )
    if gains.max() >= evidence.COMMIT_GAIN[0]:
        decides = "it is the constant that decides, and that the simulation can't know."
    else:
        decides = (
            "but no time that was played gives the talk's gain, so the model leaves something out."
        )
    return narrate.Sentence(
        f"Simulated with {narrate.count(commits.TALK_CLIENTS, 'client')}, what 9.2 gains over 9.1's"
        f" queue is {each}; the talk has {narrate.size(evidence.COMMIT_GAIN)} times. How long its"
        f" disk took for a flush isn't said; {decides}"
    )


def off_the_fast_path(chapter: Chapter) -> narrate.Sentence:
    """What the lock table costs here, beside the share of locks that are on the fast path."""
    share = chapter.median("locks", "fastpath", locks.TABLE).estimate
    others = {
        locks.TABLE: f"those with {narrate.number(100 * share, 0)} % of their locks on it",
        locks.HELD: "those beside another session's SHARE locks on the same relations",
    }
    told = (
        narrate.ratio_sentence(
            chapter.ratio("locks", "throughput", locks.FAST, variant),
            "throughput",
            "readers on the fast path",
            words,
        )
        for variant, words in others.items()
    )
    return narrate.Sentence(" ".join(told))
