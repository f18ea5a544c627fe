"""Lookups and writers over clients, what they wait for, and why they are switched out."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    CROWD,
    LOOKUP,
    OBSERVED,
    SMALL_POOL,
    SQL,
    THROUGHPUT,
    TPCB,
    Load,
    by_clients,
    client_counts,
    loaded,
    messages,
    one_per_processor,
    processors,
    require_own,
    second_server,
    server,
    waits_of,
)
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments import perf, sessions, sleeps, switches
from pgrerun.lab.relations import loading
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.record import statistics

# ---- sweeps

AGAIN = "again"
SWEEPS = {"read": "lookups", "write": "writers"}


@experiment(claims=["haas-002"])
def lookups(chapter: Chapter) -> None:
    """Primary key lookups by each number of clients; one of the numbers runs twice.

    Repeats are outside of clients: a block measures every number once.
    """
    numbers = {by_clients(number): number for number in client_counts(chapter)}
    numbers[AGAIN] = one_per_processor(chapter)
    _sweep(chapter, "read", LOOKUP, numbers, chapter.parameters.transactions)


@experiment(claims=["haas-024", "haas-025"])
def writers(chapter: Chapter) -> None:
    """pgbench's transaction by each number of clients, without waiting for the flush."""
    numbers = {1, one_per_processor(chapter), CROWD, client_counts(chapter)[-1]}
    named = {by_clients(number): number for number in sorted(numbers)}
    with sessions.configured(server(chapter), synchronous_commit="off"):
        _sweep(chapter, "write", TPCB, named, chapter.parameters.transactions / 4)


def _sweep(
    chapter: Chapter, name: str, script: str, numbers: Mapping[str, int], length: float
) -> None:
    """Observe a script by so many clients (`numbers`, by variant)."""
    tested = loaded(chapter)
    variants = [
        Variant(variant, Load(chapter, tested, script, number, length).observe)
        for variant, number in numbers.items()
    ]
    chapter.compare(name, variants, OBSERVED, warmup=0)


# ---- what they wait for

ASYNCHRONOUS, SYNCHRONOUS = "asynchronous", "synchronous"
COMMITS = {ASYNCHRONOUS: "off", SYNCHRONOUS: "on"}  # synchronous_commit


@experiment(claims=["haas-084", "haas-085"])
def lookup_waits(chapter: Chapter) -> pd.DataFrame:
    """What active backends wait for, with as many clients as processors and with the most.

    A pass of its own, four times as long as what is timed, for enough samples. Columns: clients,
    type, event, backends (on average).
    """
    tested, length = loaded(chapter), 4 * chapter.parameters.transactions
    numbers = sorted({one_per_processor(chapter), client_counts(chapter)[-1]})
    loads = {number: Load(chapter, tested, LOOKUP, number, length) for number in numbers}
    return waits_of(loads, "clients")


@experiment(claims=["haas-017", "haas-081", "haas-084", "haas-085"])
def writer_waits(chapter: Chapter) -> pd.DataFrame:
    """What writers wait for with the most clients, with and without waiting for the flush.

    Columns: load (`COMMITS`), type, event, backends (on average).
    """
    tested, loads = loaded(chapter), {}
    most, length = client_counts(chapter)[-1], chapter.parameters.transactions / 2
    for name, setting in COMMITS.items():
        around = partial(sessions.configured, tested, synchronous_commit=setting)
        loads[name] = Load(chapter, tested, TPCB, most, length, around)
    return waits_of(loads, "load")


# ---- the same load in different company

TOLD_NOBODY, TOLD_OTHERS, TOLD_READERS = (
    "change rolled back",
    "another relation",
    "the relation read",
)
CHANGES = {
    TOLD_NOBODY: "schema_changes.other_rolled_back",
    TOLD_OTHERS: "schema_changes.other_committed",
    TOLD_READERS: "schema_changes.accounts_committed",
}
NOBODY, IDLE = "nobody idle", "many idle connections"


@experiment()
def schema_changes(chapter: Chapter) -> None:
    """Lookups while another session changes a relation's definition without end.

    Rolled back, a change tells nobody; committed, it sends messages to all. The changes are the
    same in all variants and lock nobody out; only those of the relation that is read concern its
    readers, who have to look at it and to plan anew.
    """
    tested = loaded(chapter)
    with tested.connect() as connection, connection.transaction():
        loading.replace(connection, "scaling_other", SQL.text("schema_changes.other"))
    around = {
        name: partial(sessions.endless, tested, SQL.text(changes))
        for name, changes in CHANGES.items()
    }
    _beside(chapter, "schema changes", LOOKUP, chapter.parameters.transactions, around)


@experiment()
def idle_connections(chapter: Chapter) -> None:
    """Writers while nobody else is connected, and while many connections do nothing.

    Every transaction takes snapshots, and none can be reused since others commit all the time.
    """
    tested = loaded(chapter)
    idle = partial(sessions.idle, tested, chapter.parameters.idle_connections)
    around = {NOBODY: nullcontext, IDLE: idle}
    with sessions.configured(tested, synchronous_commit="off"):
        _beside(chapter, "idle connections", TPCB, chapter.parameters.transactions / 4, around)


def _beside(
    chapter: Chapter,
    name: str,
    script: str,
    length: float,
    around: Mapping[str, Callable[[], AbstractContextManager[None]]],
) -> None:
    """Throughput of a script by two clients per processor; `around` has each variant's context."""
    tested, number = server(chapter), 2 * processors()
    variants = [
        Variant(variant, Load(chapter, tested, script, number, length, context).throughput)
        for variant, context in around.items()
    ]
    chapter.compare(name, variants, THROUGHPUT, warmup=0)


FITS, SMALL = "fits", "does not fit"


@experiment(claims=["haas-080"])
def pools(chapter: Chapter) -> None:
    """Lookups in a pool that holds all accounts and in one that holds a small part.

    The system caches the rest.
    """
    servers = {FITS: server(chapter), SMALL: second_server(chapter, shared_buffers=SMALL_POOL)}
    length = chapter.parameters.transactions
    variants = [
        Variant(variant, Load(chapter, loaded(chapter, tested), LOOKUP, number, length).throughput)
        for name, tested in servers.items()
        for variant, number in zip(pool(name), (CROWD, 1), strict=True)
    ]
    chapter.compare("pools", variants, THROUGHPUT, warmup=0)


def pool(name: str) -> tuple[str, str]:
    """The variants of a pool, with many clients and with one."""
    return f"{name}, {by_clients(CROWD)}", f"{name}, {by_clients(1)}"


# ---- how often backends are switched out, and why

METRICS = (*switches.PER_TRANSACTION, "messages")


@experiment()
def switches_per_transaction(chapter: Chapter, sweep: str) -> pd.DataFrame:
    """Switches and messages per transaction of a sweep (`SWEEPS`), by its numbers of clients.

    Columns: clients, and as intervals voluntary, involuntary, messages. CannotMeasure where the
    kernel's counts can't be had.
    """
    server(chapter).require("processes")
    tables = {metric: chapter.table(sweep, metric) for metric in METRICS}
    medians = {
        metric: [statistics.median(values.dropna()) for _, values in table.items()]
        for metric, table in tables.items()
    }
    counted = pd.DataFrame(medians, index=tables["voluntary"].columns).drop(AGAIN, errors="ignore")
    counted.insert(0, "clients", counted.index.str.split().str[0].astype(int))
    return counted.sort_values("clients", ignore_index=True)


SAMPLES = 150  # of each load's switches
MONOTONIC = ("-k", "mono")  # so that perf's times are ours
LOADS = {"lookups": (LOOKUP, 1.0), "writers": (TPCB, 0.25)}  # script, share of `transactions`


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
    transactions = chapter.parameters.transactions
    # the writers' are fewer transactions, of more messages
    expected = transactions * messages(LOOKUP, transactions / most)
    event = sleeps.options(max(1, round(expected / SAMPLES)))
    spans = {}
    with PrivateDirectory(base_directory()) as folder:
        data = folder.path / "data"
        with (
            sessions.configured(tested, synchronous_commit="off"),
            perf.attached(postmaster, data, *event, *MONOTONIC) as counting,
        ):
            for name, (script, share) in LOADS.items():
                sampled = Load(chapter, tested, script, most, share * transactions)
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
