"""Lookups and writers over clients, what they wait for, and why they are switched out."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    CROWD,
    LOOKUP,
    OBSERVED,
    SMALL_POOL,
    THROUGHPUT,
    TPCB,
    Load,
    by_clients,
    client_counts,
    loaded,
    messages,
    one_per_processor,
    require_own,
    second_server,
    server,
    waits_of,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments import perf, sessions, sleeps, switches
from pgrerun.lab.server import Cluster
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.record import sequential, statistics

# ---- sweeps

AGAIN = "again"
EACH = 2000  # lookups of each client, so that few of them aren't done in milliseconds
SWEEPS = {"read": "lookups", "write": "writers"}


@experiment()
def lookups(chapter: Chapter) -> None:
    """Primary key lookups by each number of clients; one of the numbers runs twice.

    Repeats are outside of clients: a block measures every number once.
    """
    numbers = {by_clients(number): number for number in client_counts(chapter)}
    numbers[AGAIN] = one_per_processor(chapter)
    _sweep(chapter, "read", LOOKUP, numbers, chapter.parameters.transactions)


@experiment(claims=["haas-002"])
def crowd(chapter: Chapter) -> None:
    """Lookups by one client per processor and by the most clients, as many by each of either.

    So what a session takes to begin with is the same share of everybody's work. More than in the
    sweep, so that the few aren't done before their throughput can be told.
    """
    tested, few, most = loaded(chapter), one_per_processor(chapter), client_counts(chapter)[-1]
    each = chapter.parameters.transactions
    each = max(each, min(4 * each, EACH))
    variants = [
        Variant(by_clients(n), Load(chapter, tested, LOOKUP, n, each).throughput)
        for n in (few, most)
    ]
    pairs = chapter.parameters.pairs
    more = 2 * max(0, pairs - sequential.FIRST)  # beyond a first look, which may be the last
    chapter.compare("crowd", variants, THROUGHPUT, pairs + more, warmup=0)


@experiment()
def writers(chapter: Chapter) -> None:
    """pgbench's transaction by each number of clients, without waiting for the flush."""
    numbers = {1, one_per_processor(chapter), CROWD, client_counts(chapter)[-1]}
    named = {by_clients(number): number for number in sorted(numbers)}
    with sessions.configured(server(chapter), synchronous_commit="off"):
        _sweep(chapter, "write", TPCB, named, chapter.parameters.transactions / 4)


def _sweep(
    chapter: Chapter, name: str, script: str, numbers: Mapping[str, int], each: float
) -> None:
    """Observe a script by so many clients (`numbers`, by variant), with equal work for each."""
    tested = loaded(chapter)
    variants = [
        Variant(variant, Load(chapter, tested, script, number, each).observe)
        for variant, number in numbers.items()
    ]
    chapter.compare(name, variants, OBSERVED, warmup=0)


# ---- what they wait for

ASYNCHRONOUS, SYNCHRONOUS = "asynchronous", "synchronous"
COMMITS = {ASYNCHRONOUS: "off", SYNCHRONOUS: "on"}  # synchronous_commit


@experiment()
def lookup_waits(chapter: Chapter) -> pd.DataFrame:
    """What active backends wait for, with as many clients as processors and with the most.

    A pass of its own that isn't timed, as many lookups in all for either, so that few clients are
    seen often enough. Columns: clients, type, event, backends (on average).
    """
    tested, few, most = loaded(chapter), one_per_processor(chapter), client_counts(chapter)[-1]
    lookups = most * chapter.parameters.transactions
    loads = {n: Load(chapter, tested, LOOKUP, n, lookups / n) for n in sorted({few, most})}
    return waits_of(loads, "clients")


@experiment(claims=["haas-017", "haas-081", "haas-084"])
def writer_waits(chapter: Chapter) -> pd.DataFrame:
    """What writers wait for with the most clients, with and without waiting for the flush.

    Columns: load (`COMMITS`), type, event, backends (on average).
    """
    tested, loads = loaded(chapter), {}
    most, each = client_counts(chapter)[-1], chapter.parameters.transactions / 4
    for name, setting in COMMITS.items():
        around = partial(sessions.configured, tested, synchronous_commit=setting)
        loads[name] = Load(chapter, tested, TPCB, most, each, around)
    return waits_of(loads, "load")


# ---- one processor and all

ONE, ALL = "one processor", "all processors"
PER_PROCESSOR = 4  # clients, so that none is left idle while messages travel
LOADS = {"lookups": (LOOKUP, 1.0), "writers": (TPCB, 0.25)}  # script, share of `transactions`


def scaled(load: str) -> tuple[str, str]:
    """The variants of a load of `by_processors`: on all processors, and on one."""
    return f"{load}, {ALL}", f"{load}, {ONE}"


@experiment(claims=["haas-011", "haas-025"])
def by_processors(chapter: Chapter) -> None:
    """Both loads with server and clients kept on one processor, and on all, equally loaded."""
    require_own(chapter)
    tested, allowed = loaded(chapter), os.sched_getaffinity(0)
    given, variants = chapter.parameters, []
    for load, (script, share) in LOADS.items():
        for name, chosen in zip(scaled(load), (allowed, {min(allowed)}), strict=True):
            around = partial(_kept_on, tested, chosen, allowed)
            number, each = PER_PROCESSOR * len(chosen), share * given.transactions
            running = Load(chapter, tested, script, number, each, around)
            variants.append(Variant(name, running.throughput))
    with sessions.configured(tested, synchronous_commit="off"):
        chapter.compare("by processors", variants, THROUGHPUT, warmup=0)


@contextmanager
def _kept_on(tested: Cluster, chosen: set[int], allowed: set[int]) -> Iterator[None]:
    """Server and clients run on the chosen processors, and afterwards on all allowed ones."""
    try:
        tested.pin(chosen)
        os.sched_setaffinity(0, chosen)
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        tested.pin(allowed)


FITS, SMALL = "fits", "does not fit"


@experiment(claims=["haas-080"])
def pools(chapter: Chapter) -> None:
    """Lookups in a pool that holds all accounts and in one that holds a small part.

    The system caches the rest.
    """
    servers = {FITS: server(chapter), SMALL: second_server(chapter, shared_buffers=SMALL_POOL)}
    each = chapter.parameters.transactions
    variants = [
        Variant(variant, Load(chapter, loaded(chapter, tested), LOOKUP, number, each).throughput)
        for name, tested in servers.items()
        for variant, number in zip(pool(name), (CROWD, 1), strict=True)
    ]
    chapter.compare("pools", variants, THROUGHPUT, warmup=0)


def pool(name: str) -> tuple[str, str]:
    """The variants of a pool, with many clients and with one."""
    return f"{name}, {by_clients(CROWD)}", f"{name}, {by_clients(1)}"


# ---- how often backends are switched out, and why

METRICS = (*switches.PER_TRANSACTION, "messages")


@experiment(after=["clients.lookups", "clients.writers"])
def switches_per_transaction(chapter: Chapter, sweep: str) -> pd.DataFrame:
    """Switches and messages per transaction of a sweep (`SWEEPS`), by its numbers of clients.

    Columns: clients, and as intervals voluntary, involuntary, messages. CannotMeasure where the
    kernel's counts can't be had, or a load was over before its backends could be watched.
    """
    server(chapter).require("processes")
    tables = {metric: chapter.table(sweep, metric) for metric in METRICS}
    if unseen := set(tables["messages"]) - set(tables["voluntary"]):
        raise CannotMeasure(
            "longer loads",
            f"with {', '.join(sorted(unseen))} the load was over before its backends could be"
            " watched; `-p transactions` makes it longer",
        )
    medians = {
        metric: [statistics.median(values.dropna()) for _, values in table.items()]
        for metric, table in tables.items()
    }
    counted = pd.DataFrame(medians, index=tables["voluntary"].columns).drop(AGAIN, errors="ignore")
    counted.insert(0, "clients", counted.index.str.split().str[0].astype(int))
    return counted.sort_values("clients", ignore_index=True)


SAMPLES = 150  # of each load's switches
MONOTONIC = ("-k", "mono")  # so that perf's times are ours


@experiment()
def call_chains(chapter: Chapter) -> pd.DataFrame:
    """What backends waited for when they were switched out, with the most clients.

    `perf record -e context-switches -g`, as in the talk, attached to the postmaster and so to all
    backends that it starts. Columns: load, cause, switches (samples of them).
    """
    perf.require()
    require_own(chapter)
    tested, most = loaded(chapter), client_counts(chapter)[-1]
    [postmaster] = [pid for pid, role in tested.pids().items() if role == "postmaster"]
    each = chapter.parameters.transactions / 4
    # the writers' are fewer transactions, of more messages
    expected = most * each * messages(LOOKUP, each)
    event = sleeps.options(max(1, round(expected / SAMPLES)))
    spans = {}
    with PrivateDirectory(base_directory()) as folder:
        data = folder.path / "data"
        with (
            sessions.configured(tested, synchronous_commit="off"),
            perf.attached(postmaster, data, *event, *MONOTONIC) as counting,
        ):
            for name, (script, share) in LOADS.items():
                sampled = Load(chapter, tested, script, most, share * each)
                with counting():
                    began = time.monotonic()
                    sampled.run(chapter.parameters.seed)
                    spans[name] = began, time.monotonic()
        samples = perf.perf("script", "-i", data, "-F", "comm,time,ip,sym").stdout
    frames = [
        by_cause(sleeps.read(sleeps.between(samples, *span))).assign(load=name)
        for name, span in spans.items()
    ]
    return pd.concat(frames, ignore_index=True)


PREEMPTED = "its turn on a processor"
CAUSES = sleeps.CAUSES | {
    "irqentry_exit_to_user_mode": PREEMPTED,
    "__cond_resched": PREEMPTED,
    "preempt_schedule_common": PREEMPTED,
}


def by_cause(chains: pd.DataFrame) -> pd.DataFrame:
    """Switches by cause, most first: cause, switches.

    Those of the postmaster, which waits for nobody in particular, are left out.
    """
    backends = chains[[not _postmasters(chain) for chain in chains["chain"]]]
    shares = sleeps.by_cause(backends, CAUSES)
    counted = (shares * backends["samples"].sum()).round().astype(int)
    return pd.DataFrame({"cause": shares.index, "switches": counted.to_numpy()})


def _postmasters(chain: tuple[str, ...]) -> bool:
    if not any(name.startswith("ServerLoop") for name in chain):
        return False
    return not any(word in name for name in chain for word in ("Backend", "Postgres", "child"))
