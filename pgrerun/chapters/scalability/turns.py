"""How often backends are switched out at each step of the sweeps, by the kernel's count, and what for, by perf."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import reading, writing
from pgrerun.chapters.scalability.bench import LOOKUP, drive, levels, messages, server, sessions
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import perf, sleeps
from pgrerun.instruments.switches import PER_TRANSACTION

SWEEPS = {"read": "lookups", "write": "writers"}
METRICS = (*PER_TRANSACTION, "messages")
NEAR = 0.9  # of the greatest throughput, which the curve reaches where it bends
BEYOND = 1.1  # switches for each message: fewer are the messages' own


def context_switches(chapter: Chapter) -> None:
    """Whether the kernel's count of the backends' switches can be had for these sweeps; CannotMeasure if not."""
    server(chapter).require("processes")


def profile(chapter: Chapter, experiment: str) -> pd.DataFrame | None:
    """Switches and messages per transaction of a sweep, as intervals: clients, voluntary, involuntary, messages; None if not counted."""
    tables = {metric: chapter.table(experiment, metric) for metric in METRICS}
    if any(table.empty for table in tables.values()):
        return None
    arms = {int(arm.split()[0]): arm for arm in tables["voluntary"] if arm != reading.AGAIN}
    rows = [(number, *(statistics.median(table[arms[number]].dropna()) for table in tables.values())) for number in sorted(arms)]
    return pd.DataFrame(rows, columns=["clients", *METRICS])


def bend(chapter: Chapter, experiment: str) -> int:
    """The fewest clients that come near the greatest throughput of a sweep."""
    median = chapter.table(experiment, "throughput").drop(columns=reading.AGAIN, errors="ignore").median()
    return min(int(arm.split()[0]) for arm in median.index[median >= NEAR * median.max()])


SAMPLES = 150  # of each load's switches
CLOCK = ("-k", "mono")  # so that perf's times are ours


def call_chains(chapter: Chapter) -> pd.DataFrame:
    """What backends waited for when they were switched out, most clients, by call chain: load, cause, switches (samples of them).

    `perf record -e context-switches -g`, as in the talk, attached to the postmaster and so to all backends that it starts.
    """
    perf.require()
    if chapter.borrowed:
        raise CannotMeasure("processes", "perf follows the backends that a postmaster starts, and this server's isn't ours to look into")
    on, number = writing.prepared(chapter), levels(chapter)[-1]
    [postmaster] = [pid for pid, role in on.pids().items() if role == "postmaster"]
    each = chapter.parameters.transactions / number
    expected = number * each * messages(LOOKUP, each)  # the writers' are fewer transactions, of more messages
    with TemporaryDirectory(prefix="pgrerun-turns-") as folder, sessions(on, synchronous_commit="off"):
        data, spans = Path(folder, "data"), {}
        with perf.attached(postmaster, data, *sleeps.options(max(1, round(expected / SAMPLES))), *CLOCK) as counting:
            for name, load in {"lookups": _lookups, "writers": _writers}.items():
                with counting():
                    began = time.monotonic()
                    load(chapter, on, number)
                    spans[name] = began, time.monotonic()
        script = perf._perf("script", "-i", data, "-F", "comm,time,ip,sym").stdout
    return pd.concat([causes(sleeps.read(sleeps.between(script, *span))).assign(load=name) for name, span in spans.items()], ignore_index=True)


TURN = "its turn on a processor"
CAUSES = sleeps.CAUSES | {"irqentry_exit_to_user_mode": TURN, "__cond_resched": TURN, "preempt_schedule_common": TURN}


def causes(chains: pd.DataFrame) -> pd.DataFrame:
    """Switches by cause, most first: cause, switches; those of the postmaster, which waits for nobody in particular, left out."""
    backends = chains[[not _postmasters(chain) for chain in chains["chain"]]]
    shares = sleeps.by_cause(backends, CAUSES)
    return pd.DataFrame({"cause": shares.index, "switches": (shares * backends["samples"].sum()).round().astype(int).to_numpy()})


def _postmasters(chain: tuple[str, ...]) -> bool:
    return any(name.startswith("ServerLoop") for name in chain) and not any("Backend" in name or "Postgres" in name or "child" in name for name in chain)


def _lookups(chapter: Chapter, on, number: int) -> None:
    drive(chapter, on, LOOKUP, number, chapter.parameters.transactions, chapter.parameters.seed)


def _writers(chapter: Chapter, on, number: int) -> None:
    writing._write(chapter, on, number, chapter.parameters.seed)
