"""Backends that wait for a lock, seen by three instruments.

They are the CPU profile, the call chains of context switches, and the wait events.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments.load import SQL, create
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import perf, pgbench, sleeps, waits
from pgrerun.lab.server import Server
from pgrerun.record import statistics

FREE, QUEUED = "each its own row", "all the same row"
OWN_ROW = {FREE: 1, QUEUED: 0}  # a variable of sql/update_counted.pgbench
WATCH = 0.3  # seconds that each profiler looks
ENOUGH = 20  # samples of a profile
HEAVYWEIGHT, LIGHTWEIGHT = "a heavyweight lock", "a lightweight lock"
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
EVENTS = {
    "Lock": HEAVYWEIGHT,
    "LWLock": LIGHTWEIGHT,
    "Client": "the client",
    "IO": "the log's flush",
    "CPU": "nothing: it runs",
}


@dataclass(frozen=True)
class Profile:
    """What the instruments show of one load.

    tps        transactions per second, profilers running
    lock_code  share of the CPU samples that lie in functions of the lock manager
    asleep     share of the context switches for a heavyweight lock
    chains     context switches by what the backend was waiting for: share of all
    events     samples of active backends by what they waited for: share of all
    """

    tps: float
    lock_code: statistics.Interval
    asleep: statistics.Interval
    chains: pd.Series
    events: pd.Series


@experiment(claims=["haas-076"], needs=["processes"])
def profiles(chapter: Chapter) -> dict[str, Profile]:
    """Both loads under all three instruments at once: `FREE` and `QUEUED`.

    CannotMeasure without perf, and where the profilers come to no more than a few samples.
    """
    perf.require()
    if not chapter.server.owned:
        raise CannotMeasure(
            "processes",
            "perf needs the process ids of a server's backends, and this server isn't ours to look"
            " into",
        )
    clients = chapter.parameters.clients
    create(chapter.server, "counted", "relations.counted", clients=clients)
    return {load: profile(chapter, load) for load in OWN_ROW}


def profile(chapter: Chapter, load: str) -> Profile:
    """One load, longer if the profilers of a busy machine came up when it was nearly over."""
    for seconds in (1, 2, 4, 8):
        try:
            sampled, chains, events, tps = _watched(chapter, load, seconds)
        except ServerError:  # the backends were gone when a profiler came up
            chapter.server.ensure_alive()
            continue
        by_symbol = sampled.groupby("symbol")["samples"].sum()
        taken, switches = int(by_symbol.sum()), int(chains["samples"].sum())
        if min(taken, switches) >= ENOUGH:
            causes = sleeps.by_cause(chains, sleeps.CAUSES)
            return Profile(
                tps,
                statistics.share(int(by_symbol.reindex(LOCK_CODE).sum()), taken),
                statistics.share(round(switches * causes.get(HEAVYWEIGHT, 0.0)), switches),
                causes,
                by_event(events),
            )
    raise CannotMeasure(
        "profiles", f"perf never took {ENOUGH} samples of backends that update {load}"
    )


def _watched(
    chapter: Chapter, load: str, seconds: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, float]:
    """One run: CPU samples, context switches, wait events, and transactions per second."""
    server, clients = chapter.server, chapter.parameters.clients
    with ThreadPoolExecutor() as pool, waits.sampled(server) as waiting:
        running = pool.submit(
            pgbench.run,
            server,
            SQL.script("update_counted"),
            clients=clients,
            jobs=2,
            seconds=seconds,
            protocol="prepared",
            variables={"own_row": OWN_ROW[load]},
            seed=chapter.parameters.seed,
        )
        backends = _arrived(server, clients, running)
        sampled = pool.submit(perf.sample, backends, WATCH, frequency=1999)
        chains = pool.submit(sleeps.sample, backends, WATCH)
        tps = running.result().tps
    return sampled.result(), chains.result(), waiting.frame, tps


def _arrived(server: Server, clients: int, running: Future) -> list[int]:
    """The backends of all clients, once they are at work."""
    with server.connect() as connection:
        while True:
            found = [pid for (pid,) in SQL.run(connection, "activity.updating")]
            if len(found) >= clients or running.done():
                return found
            time.sleep(0.01)


def by_event(waiting: pd.DataFrame) -> pd.Series:
    """Share of the samples of `waits` by what backends waited for, as `sleeps` calls it."""
    causes = waiting["type"].map(EVENTS).fillna("other")
    backends = waiting["backends"].astype(float).groupby(causes).sum()
    return backends / backends.sum()
