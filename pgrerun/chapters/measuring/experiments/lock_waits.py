"""Backends that wait for a lock, and the instruments that see it or don't.

For a heavyweight lock: the CPU profile, the call chains of context switches, and the wait events.
For a lightweight lock: today's views, and builds whose processes count by LWLOCK_STATS.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd

from pgrerun.chapters.measuring.loads import SQL, create
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import off_cpu, perf, pgbench, server_log, sessions
from pgrerun.lab.server import Server, builds, fetched, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import statistics

T = TypeVar("T")

FREE, QUEUED = "each its own lock", "all the same lock"
OWN_LOCK = {FREE: 1, QUEUED: 0}  # a variable of sql/lock_and_count.pgbench
WATCH = 0.3  # seconds that each profiler looks
ENOUGH = 20  # samples of a profile
FREQUENCY = 1999  # CPU samples per second of a backend that runs
HEAVYWEIGHT, LIGHTWEIGHT = "a heavyweight lock", "a lightweight lock"
PROFILE, SWITCHES, EVENTS = "CPU profile", "context switches", "wait events"
POSTGRES, KERNEL, LIBRARIES = "PostgreSQL's code", "the kernel's code", "libraries' code"
CALLED = {
    "Lock": HEAVYWEIGHT,
    "LWLock": LIGHTWEIGHT,
    "Client": "the client",
    "IO": "the log's flush",
    "CPU": "nothing: it runs",
}
SHARE = "share of the samples"


@experiment(
    units={"share": SHARE, "low": SHARE, "high": SHARE, "tps": "transactions/s"},
    needs=["processes"],
)
def profiles(bed: Testbed) -> Iterator[Row]:
    """Clients that take a lock each, and clients that all take one, under three instruments.

    Both execute the same: a lock of an application's own, and counting while it is held. A row's
    lock, which was taken until 2026-12-01, lets waiters read the row's new version and flush alone.

    A row per load, instrument and part of what it shows, with the 95 % interval of the share; and
    one per load with its throughput while it is watched. CannotMeasure without perf, and where the
    profilers come to no more than a few samples.
    """
    perf.require(bed.borrowed)
    for load in OWN_LOCK:
        yield from profile(bed, load)


def profile(bed: Testbed, load: str) -> Iterator[Row]:
    """What the three instruments show of one load."""
    sampled, chains, events, tps = _long_enough(bed, load, partial(_watched, bed, load))
    switches = int(chains["samples"].sum())
    causes = {HEAVYWEIGHT: 0.0, **off_cpu.share_by_cause(chains, off_cpu.CAUSES)}
    yield {"load": load, "instrument": "pgbench", "part": "throughput", "tps": tps}
    for instrument, parts, of in (
        (PROFILE, *by_program(sampled)),
        (SWITCHES, {cause: round(switches * x) for cause, x in causes.items()}, switches),
        (EVENTS, *by_event(events)),
    ):
        for part, samples in parts.items():
            share = statistics.share(samples, of)
            yield {
                "load": load,
                "instrument": instrument,
                "part": part,
                "share": share.estimate,
                "low": share.low,
                "high": share.high,
            }


def _long_enough(bed: Testbed, load: str, watch: Callable[[int], T | None]) -> T:
    """What `watch` finds in a run of so many seconds: a longer one if it finds too little.

    Or if the profilers of a busy machine came up when the run was nearly over.
    """
    for seconds in (1, 2, 4, 8):
        try:
            found = watch(seconds)
        except ServerError:  # the backends were gone when a profiler came up
            bed.server.ensure_alive()
            continue
        if found is not None:
            return found
    raise CannotMeasure("profiles", f"perf never took enough samples of backends that lock {load}")


def _watched(
    bed: Testbed, load: str, seconds: int
) -> tuple[pd.DataFrame, pd.DataFrame, off_cpu.WaitEvents, float] | None:
    """One run: CPU samples, context switches, wait events, and transactions per second."""
    server, clients = bed.server, bed.parameters.clients
    with ThreadPoolExecutor() as pool, off_cpu.sample_wait_events(server) as waiting:
        running = pool.submit(_count_locked, bed, load, seconds)
        backends = _arrived(server, clients, running)
        sampled = pool.submit(perf.sample, backends, WATCH, frequency=FREQUENCY)
        chains = pool.submit(off_cpu.sample_stacks, backends, WATCH)
        tps = running.result().tps
    found = sampled.result(), chains.result()
    enough = all(one["samples"].sum() >= ENOUGH for one in found)
    return (*found, waiting, tps) if enough else None


def _count_locked(bed: Testbed, load: str, seconds: int) -> pgbench.PgbenchResult:
    return _work(bed, bed.server, "lock_and_count", seconds, {"own_lock": OWN_LOCK[load]})


def _update(bed: Testbed, server: Server, seconds: int) -> pgbench.PgbenchResult:
    return _work(bed, server, "update_counted", seconds, {})


def _work(
    bed: Testbed, server: Server, script: str, seconds: int, variables: dict[str, int]
) -> pgbench.PgbenchResult:
    return pgbench.run(
        server,
        SQL.script(script),
        clients=bed.parameters.clients,
        jobs=2,
        seconds=seconds,
        protocol="prepared",
        variables=variables,
        seed=bed.parameters.seed,
    )


def _arrived(server: Server, clients: int, running: Future) -> list[int]:
    """The backends of all clients, once they are at work."""
    with server.connect() as connection:
        while True:
            found = [pid for (pid,) in SQL.run(connection, "activity.at_work")]
            if len(found) >= clients or running.done():
                return found
            time.sleep(0.01)


def by_program(sampled: pd.DataFrame) -> tuple[dict[str, int], int]:
    """CPU samples by whose code ran, and all of them."""
    kernel = sampled["dso"].str.match(r"\[(?!vdso|unknown)")
    whose = kernel.map({True: KERNEL, False: LIBRARIES})
    whose = whose.mask(sampled["dso"] == "postgres", POSTGRES)
    found = sampled["samples"].groupby(whose).sum()
    return {str(part): int(samples) for part, samples in found.items()}, int(found.sum())


def by_event(waiting: off_cpu.WaitEvents) -> tuple[dict[str, int], int]:
    """Samples by what backends waited for, as the call chains call it, and all of them."""
    causes = waiting.frame["type"].map(CALLED).fillna("other")
    backends = waiting.frame["backends"].astype(float) * waiting.samples
    found = backends.groupby(causes).sum().round().astype(int)
    return dict(found), int(found.sum())


# ---- whether CPU profiles look the same

BOTH, TWICE = "both loads", "one load twice"
COMPARED = {BOTH: (FREE, QUEUED), TWICE: (FREE, FREE)}
DRAWN = 2500  # samples of each profile that are compared: more than a second of one processor
DRAWS = 100


@experiment(units={"overlap": SHARE}, needs=["processes"])
def profile_overlap(bed: Testbed) -> Iterator[Row]:
    """The share of samples that CPU profiles by function have in common: 1 if they are the same.

    Of profiles of both loads, and of two of the load without a problem, which differ by chance
    alone. Each is of a run of its own, beside which nothing else is sampled. CannotMeasure as
    `profiles`.
    """
    perf.require(bed.borrowed)

    def measure(block: Block, compared: str) -> dict[str, float]:
        one, other = (by_function(bed, load) for load in COMPARED[compared])
        return {"overlap": overlap(one, other, block.seed)}

    yield from bed.compare(
        measure,
        {"compared": list(COMPARED)},
        pairs=bed.timed_pairs(bed.fewest_pairs),
        warmup=0,
        fixed=True,
    )


def by_function(bed: Testbed, load: str) -> pd.Series:
    """CPU samples of a load by function, at least `DRAWN`.

    What runs in a program whose functions perf can't name counts as one function of it.
    """

    def watch(seconds: int) -> pd.Series | None:
        seconds *= 2
        with ThreadPoolExecutor() as pool:
            running = pool.submit(_count_locked, bed, load, seconds)
            backends = _arrived(bed.server, bed.parameters.clients, running)
            sampled = perf.sample(backends, 0.7 * seconds, frequency=FREQUENCY)
        running.result()
        unnamed = sampled["symbol"].str.startswith("0x")
        function = sampled["symbol"].mask(unnamed, sampled["dso"])
        samples = sampled["samples"].groupby(function).sum()
        return samples if samples.sum() >= DRAWN else None

    return _long_enough(bed, load, watch)


def overlap(one: pd.Series, other: pd.Series, seed: int) -> float:
    """The share of samples that two profiles, of at least `DRAWN` samples, have in common.

    Of as many of each, drawn at random `DRAWS` times, since few samples differ more by chance than
    many do: 0 if no function is in both, 1 if each has the same share of both.
    """
    rng = np.random.default_rng(seed)
    both = pd.concat([one, other], axis=1).fillna(0).astype(int).to_numpy()
    first, second = (
        rng.multivariate_hypergeometric(samples, DRAWN, size=DRAWS) for samples in both.T
    )
    return float(np.minimum(first, second).sum(axis=1).mean() / DRAWN)


# ---- lightweight locks

TODAY, TOTAL = "the server under test", "all together"
COUNTING = ("9.1-lwlock-stats", "9.2-lwlock-stats", "spindelays")  # of data/builds.csv
VIEWS, CHAINS, STATS = "views", "call chains", "LWLOCK_STATS"


@experiment(
    units={
        "waits": "samples, or waits",
        "spins": "samples, or spins",
        "taken": "times, or views that tell them",
        "exclusively": "times",
    }
)
def lightweight_locks(bed: Testbed, seconds: int = 1) -> Iterator[Row]:
    """Make backends wait for the lock of the WAL that is written, and ask who tells of it.

    All clients commit and flush, so that one flushes and the others wait for the lightweight lock
    under which it does. A row per server, instrument and lock. `views`: samples in which a backend
    was seen to wait for it, or to spin, and how many views count how often locks are taken. `call
    chains`: context switches within the acquiring of a lightweight lock, where perf is there.
    `LWLOCK_STATS`: what the processes of a build of 2012 count, where one is registered.
    """
    yield from _today(bed, seconds)
    for name in COUNTING:
        if name in builds.registered() and not bed.borrowed:
            yield from _counting(bed, name, seconds)


def _today(bed: Testbed, seconds: int) -> Iterator[Row]:
    server, clients = bed.server, bed.parameters.clients
    create(server, "counted", "relations.counted", clients=clients)
    seen = not perf.unavailable() and not bed.borrowed
    with ThreadPoolExecutor() as pool, off_cpu.sample_wait_events(server) as waiting:
        running = pool.submit(_update, bed, server, seconds)
        backends = _arrived(server, clients, running)
        chains = pool.submit(off_cpu.sample_stacks, backends, WATCH) if seen else None
        running.result()
    about = {"server": TODAY, "instrument": VIEWS}
    samples = waiting.frame.assign(waits=waiting.frame["backends"] * waiting.samples)
    locks = samples[samples["type"] == "LWLock"]
    for event, waits in zip(locks["event"], locks["waits"], strict=True):
        yield {**about, "lock": event, "waits": round(float(waits))}
    spins = samples.loc[samples["event"] == "SpinDelay", "waits"].sum()
    with server.connect() as connection:
        counted = value(connection, int, SQL.text("activity.lock_counts"))
    waits, spins = round(float(locks["waits"].sum())), round(float(spins))
    yield {**about, "lock": TOTAL, "waits": waits, "spins": spins, "taken": counted}
    if chains is not None:
        causes = off_cpu.share_by_cause(chains.result(), off_cpu.CAUSES)
        waits = round(int(chains.result()["samples"].sum()) * causes.get(LIGHTWEIGHT, 0.0))
        yield {"server": TODAY, "instrument": CHAINS, "lock": TOTAL, "waits": waits}


def _counting(bed: Testbed, name: str, seconds: int) -> Iterator[Row]:
    """The same load on a build whose processes print, when they end, what they counted."""
    server = bed.release(fetched.chosen(name), cluster_name="counting")
    create(server, "counted", "relations.counted", clients=bed.parameters.clients)
    before = len(server.log())
    work = partial(_update, bed, server, seconds)
    _, waiting = sessions.count_meanwhile(server, SQL.text("activity.waiting"), 0.005, work)
    yield {"server": name, "lock": TOTAL, "instrument": VIEWS, "waits": waiting}
    for lock, counts in server_log.lightweight_locks(server.log()[before:]).items():
        yield {"server": name, "instrument": STATS, "lock": f"lock {lock}", **counts}
