"""Lookups and writers over clients, what they wait for, and why they are switched out."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pandas as pd

from pgrerun.chapters.scalability.experiments.large_machines import LARGE
from pgrerun.chapters.scalability.load import (
    OBSERVED,
    SQL,
    TPS,
    Load,
    client_counts,
    compare_loads,
    crowd_size,
    in_memory,
    loaded,
    messages,
    one_per_processor,
    ours,
    processors,
    several,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import off_cpu, perf, sessions
from pgrerun.lab.server import Cluster, private
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.record import statistics

# ---- sweeps


@experiment(units=OBSERVED)
def lookups(bed: Testbed) -> Iterator[Row]:
    """Primary key lookups by each number of clients; one of the numbers runs twice.

    Repeats are outside of clients: a block measures every number once. What differs between the two
    runs of one number is the noise that a word is held against, so they are as long as what it is
    of; the other numbers are told only.
    """
    tested, twice = loaded(bed), one_per_processor(bed)
    runs = [(number, False) for number in client_counts(bed)] + [(twice, True)]
    loads = {run: Load(bed, tested, "lookup", run[0], told=run[0] != twice) for run in runs}
    yield from compare_loads(bed, ("clients", "again"), loads, bed.timed_pairs(), Load.observe)


@experiment(units=TPS)
def crowd(bed: Testbed) -> Iterator[Row]:
    """Lookups by one client per processor and by the most clients."""
    tested, many = loaded(bed), [one_per_processor(bed), client_counts(bed)[-1]]
    loads = {(number,): Load(bed, tested, "lookup", number) for number in many}
    yield from compare_loads(bed, ["clients"], loads, bed.timed_pairs(2 * bed.parameters.pairs))


@experiment(units=OBSERVED, needs=["restart"])
def writers(bed: Testbed) -> Iterator[Row]:
    """pgbench's transaction by each number of clients, without waiting for the flush."""
    tested = loaded(bed)
    many = sorted({1, one_per_processor(bed), crowd_size(), client_counts(bed)[-1]})
    loads = {(number,): Load(bed, tested, "tpcb", number, told=True) for number in many}
    with sessions.configured(tested, synchronous_commit="off"):
        yield from compare_loads(bed, ["clients"], loads, bed.timed_pairs(), Load.observe)


RESAMPLES = 100  # of the law's fit: its intervals are told and not judged
PARTS = {"scale": "transactions/s", "sigma": "", "kappa": "", "peak": "clients"}
LAW = (
    PARTS
    | {f"{part}_{end}": unit for part, unit in PARTS.items() for end in ("low", "high")}
    | {"measured_peak": "clients", "fits": "yes or no"}
)


@experiment(units=LAW)
def law_of_lookups(bed: Testbed) -> Iterator[Row]:
    """The universal scalability law, fitted to what `lookups` measured.

    It fits if its peak lies between the numbers of clients next to the one with the greatest
    throughput. Ends of intervals are there only where enough was repeated.
    """
    yield _fitted(bed, "lookups")


@experiment(units=LAW)
def law_of_writers(bed: Testbed) -> Iterator[Row]:
    """The same, fitted to what `writers` measured."""
    yield _fitted(bed, "writers")


def _fitted(bed: Testbed, load: str) -> Row:
    rows = [row for row in bed.rows_of(load) if not (row.get("again") or row["disturbed"])]
    swept = pd.DataFrame(rows, columns=["clients", "tps", "block"])
    if swept["clients"].nunique() < 4:
        raise CannotMeasure("more clients", "the law needs four different numbers of clients")
    found = statistics.scalability(
        swept["clients"].astype(float),
        swept["tps"].astype(float),
        seed=bed.parameters.seed,
        resamples=RESAMPLES,
    )
    row: Row = {"load": load}
    repeated = swept["block"].nunique() >= statistics.ENOUGH
    for part in PARTS:
        x = getattr(found, part)
        row[part] = _finite(x.estimate)
        row |= {f"{part}_low": _finite(x.low), f"{part}_high": _finite(x.high)} if repeated else {}
    medians = swept.astype({"tps": float}).groupby("clients")["tps"].median()
    most = int(medians.idxmax())
    below = max((step for step in medians.index if step < most), default=0)
    above = min((step for step in medians.index if step > most), default=float("inf"))
    return row | {"measured_peak": most, "fits": bool(below <= found.peak.estimate <= above)}


def _finite(x: float) -> float | None:
    return float(x) if abs(x) < float("inf") else None


# ---- what they wait for


@experiment(units={"backends": "backends"})
def lookup_waits(bed: Testbed) -> Iterator[Row]:
    """What active backends wait for, with as many clients as processors and with the most.

    A pass of its own that isn't timed. `backends` is their number on average.
    """
    tested = loaded(bed)
    for number in sorted({one_per_processor(bed), client_counts(bed)[-1]}):
        for row in _waits(bed, Load(bed, tested, "lookup", number)):
            yield {"clients": number} | row


@experiment(units={"backends": "backends"}, needs=["restart"])
def writer_waits(bed: Testbed) -> Iterator[Row]:
    """What writers wait for with the most clients, with and without waiting for the flush."""
    tested = loaded(bed)
    for commits, setting in {"asynchronous": "off", "synchronous": "on"}.items():
        around = partial(sessions.configured, tested, synchronous_commit=setting)
        for row in _waits(bed, Load(bed, tested, "tpcb", client_counts(bed)[-1], around)):
            yield {"commits": commits} | row


def _waits(bed: Testbed, load: Load) -> Iterator[Row]:
    load.lasting()  # tried out before anybody looks
    with off_cpu.sample_wait_events(load.server) as sampled:
        load.run(bed.parameters.seed)
    yield from sampled.require_frame().to_dict("records")


# ---- one processor and all

PER_PROCESSOR = 4  # clients, so that none is left idle while messages travel
SCRIPTS = {"lookups": "lookup", "writers": "tpcb"}


@experiment(units=TPS, needs=["restart"])
def by_processors(bed: Testbed) -> Iterator[Row]:
    """Both loads with server and clients kept on one processor, and on all, equally loaded.

    As on the builds, all is in the pool, and no checkpoint comes.
    """
    told, tested = processors() < LARGE, bed.cluster(**in_memory(bed))
    yield from on_one_and_on_all(bed, tested, bed.timed_pairs(), told)


def on_one_and_on_all(
    bed: Testbed, tested: Cluster, many: int, told: bool = False, **common: str
) -> Iterator[Row]:
    """The same on a server whose commits don't wait; `common` are factors of all rows."""
    usable = os.sched_getaffinity(0)
    kept = {1: {min(usable)}, several(): usable}
    loaded(bed, tested)
    loads = {
        (load, number): Load(
            bed,
            tested,
            script,
            PER_PROCESSOR * number,
            partial(_kept_on, tested, chosen, usable),
            told,
        )
        for load, script in SCRIPTS.items()
        for number, chosen in kept.items()
    }
    yield from compare_loads(bed, ("load", "processors"), loads, many, fixed=True, **common)


@contextmanager
def _kept_on(tested: Cluster, chosen: set[int], usable: set[int]) -> Iterator[None]:
    """Server and clients run on the chosen processors, and afterwards on all usable ones."""
    try:
        tested.pin(chosen)
        os.sched_setaffinity(0, chosen)
        yield
    finally:
        os.sched_setaffinity(0, usable)
        tested.pin(usable)


# ---- how often backends are switched out, and why

SAMPLES = 150  # of each load's switches
MONOTONIC = ("-k", "mono")  # so that perf's times are ours


@experiment(units={"switches": "switches"}, needs=["restart"])
def call_chains(bed: Testbed) -> Iterator[Row]:
    """What backends waited for when they were switched out, with the most clients.

    `perf record -e context-switches -g`, as in the talk, attached to the postmaster and so to all
    backends that it starts. `switches` is how many samples of them were taken. CannotMeasure where
    perf took none of a load's.
    """
    perf.require()
    tested, most = bed.cluster(**ours(bed)), client_counts(bed)[-1]
    loaded(bed, tested)
    [postmaster] = [pid for pid, role in tested.pids().items() if role == "postmaster"]
    spans = {}
    with (
        private.PrivateDirectory(private.base_directory()) as folder,
        sessions.configured(tested, synchronous_commit="off"),
    ):
        loads = {name: Load(bed, tested, script, most) for name, script in SCRIPTS.items()}
        # the writers' are fewer transactions, of more messages
        each = loads["lookups"].lasting()
        expected = most * each * messages(SQL.script("lookup"), each)
        event = off_cpu.stack_options(max(1, round(expected / SAMPLES)))
        loads["writers"].lasting()  # tried out before perf looks
        data = folder.path / "data"
        with perf.attached(postmaster, data, *event, *MONOTONIC) as counting:
            for name, load in loads.items():
                with counting():
                    began = time.monotonic()
                    load.run(bed.parameters.seed)
                    spans[name] = began, time.monotonic()
        samples = perf.perf("script", "-i", data, "-F", "comm,time,ip,sym").stdout
    found = {
        name: by_cause(off_cpu.parse_stacks(off_cpu.samples_between(samples, *span)))
        for name, span in spans.items()
    }
    if unseen := " and ".join(name for name, counted in found.items() if counted.empty):
        raise CannotMeasure(f"perf took no sample of a backend that was switched out ({unseen}).")
    for name, counted in found.items():
        for cause, switches in counted.items():
            yield {"load": name, "cause": cause, "switches": int(switches)}


PREEMPTED = "its turn on a processor"
CAUSES = off_cpu.CAUSES | {
    "irqentry_exit_to_user_mode": PREEMPTED,
    "__cond_resched": PREEMPTED,
    "preempt_schedule_common": PREEMPTED,
}


def by_cause(chains: pd.DataFrame) -> pd.Series:
    """Switches by cause, most first.

    Those of the postmaster, which waits for nobody in particular, are left out.
    """
    # booleans by their type: a list without any would choose no column instead of no row
    backends = chains[~chains["chain"].map(_postmasters).astype(bool)]
    shares = off_cpu.share_by_cause(backends, CAUSES)
    return (shares * backends["samples"].sum()).round().astype(int)


def _postmasters(chain: tuple[str, ...]) -> bool:
    if not any(name.startswith("ServerLoop") for name in chain):
        return False
    return not any(word in name for name in chain for word in ("Backend", "Postgres", "child"))
