"""Backends that wait for a lock, and the instruments that see it or don't.

For a row's lock: the CPU profile, the call chains of context switches, and the wait events. For a
lightweight lock: today's views, and builds whose processes count by LWLOCK_STATS.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pandas as pd

from pgrerun.chapters.measuring.loads import SQL, create
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import off_cpu, perf, pgbench, server_log, sessions
from pgrerun.lab.server import Server, builds, fetched, value
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.record import statistics

FREE, QUEUED = "each its own row", "all the same row"
OWN_ROW = {FREE: 1, QUEUED: 0}  # a variable of sql/update_counted.pgbench
WATCH = 0.3  # seconds that each profiler looks
ENOUGH = 20  # samples of a profile
HEAVYWEIGHT, LIGHTWEIGHT = "a heavyweight lock", "a lightweight lock"
PROFILE, SWITCHES, EVENTS = "CPU profile", "context switches", "wait events"
IN_MANAGER, ELSEWHERE = "code of the lock manager", "other code"
LOCK_CODE = (
    "LockAcquire",
    "LockAcquireExtended",
    "ProcSleep",
    "LWLockAcquire",
    "LWLockAcquireOrWait",
    "XactLockTableWait",
    "WaitOnLock",
    "JoinWaitQueue",
)
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
    """Clients that update a row each, and clients that all update one, under three instruments.

    A row per load, instrument and part of what it shows, with the 95 % interval of the share; and
    one per load with its throughput while it is watched. CannotMeasure without perf, and where the
    profilers come to no more than a few samples.
    """
    perf.require()
    if bed.borrowed:
        raise CannotMeasure(
            "processes",
            "perf needs the process ids of a server's backends, and this server isn't ours to look"
            " into",
        )
    create(bed.server, "counted", "relations.counted", clients=bed.parameters.clients)
    for load in OWN_ROW:
        yield from profile(bed, load)


def profile(bed: Testbed, load: str) -> Iterator[Row]:
    """One load, longer if the profilers of a busy machine came up when it was nearly over."""
    for seconds in (1, 2, 4, 8):
        try:
            sampled, chains, events, tps = _watched(bed, load, seconds)
        except ServerError:  # the backends were gone when a profiler came up
            bed.server.ensure_alive()
            continue
        by_symbol = sampled.groupby("symbol")["samples"].sum()
        taken, switches = int(by_symbol.sum()), int(chains["samples"].sum())
        if min(taken, switches) < ENOUGH:
            continue
        in_manager = int(by_symbol.reindex(LOCK_CODE).sum())
        causes = {HEAVYWEIGHT: 0.0, **off_cpu.share_by_cause(chains, off_cpu.CAUSES)}
        yield {"load": load, "instrument": "pgbench", "part": "throughput", "tps": tps}
        for instrument, parts, of in (
            (PROFILE, {IN_MANAGER: in_manager, ELSEWHERE: taken - in_manager}, taken),
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
        return
    raise CannotMeasure(
        "profiles", f"perf never took {ENOUGH} samples of backends that update {load}"
    )


def _watched(
    bed: Testbed, load: str, seconds: int
) -> tuple[pd.DataFrame, pd.DataFrame, off_cpu.WaitEvents, float]:
    """One run: CPU samples, context switches, wait events, and transactions per second."""
    server, clients = bed.server, bed.parameters.clients
    with ThreadPoolExecutor() as pool, off_cpu.sample_wait_events(server) as waiting:
        running = pool.submit(_update, bed, server, load, seconds)
        backends = _arrived(server, clients, running)
        sampled = pool.submit(perf.sample, backends, WATCH, frequency=1999)
        chains = pool.submit(off_cpu.sample_stacks, backends, WATCH)
        tps = running.result().tps
    return sampled.result(), chains.result(), waiting, tps


def _update(bed: Testbed, server: Server, load: str, seconds: int) -> pgbench.PgbenchResult:
    return pgbench.run(
        server,
        SQL.script("update_counted"),
        clients=bed.parameters.clients,
        jobs=2,
        seconds=seconds,
        protocol="prepared",
        variables={"own_row": OWN_ROW[load]},
        seed=bed.parameters.seed,
    )


def _arrived(server: Server, clients: int, running: Future) -> list[int]:
    """The backends of all clients, once they are at work."""
    with server.connect() as connection:
        while True:
            found = [pid for (pid,) in SQL.run(connection, "activity.updating")]
            if len(found) >= clients or running.done():
                return found
            time.sleep(0.01)


def by_event(waiting: off_cpu.WaitEvents) -> tuple[dict[str, int], int]:
    """Samples by what backends waited for, as the call chains call it, and all of them."""
    causes = waiting.frame["type"].map(CALLED).fillna("other")
    backends = waiting.frame["backends"].astype(float) * waiting.samples
    found = backends.groupby(causes).sum().round().astype(int)
    return dict(found), int(found.sum())


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
        running = pool.submit(_update, bed, server, FREE, seconds)
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
    work = partial(_update, bed, server, FREE, seconds)
    _, waiting = sessions.count_meanwhile(server, SQL.text("activity.waiting"), 0.005, work)
    yield {"server": name, "lock": TOTAL, "instrument": VIEWS, "waits": waiting}
    for lock, counts in server_log.lightweight_locks(server.log()[before:]).items():
        yield {"server": name, "instrument": STATS, "lock": f"lock {lock}", **counts}
