"""Backends that wait for a lock, seen by three instruments: the CPU profile, the context switches, the wait events."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.instruments import perf, pgbench, sleeps
from pgrerun.relations import loading

FREE, QUEUED = "each its own row", "all the same row"
ROW = {FREE: ":client_id", QUEUED: "0"}
SCRIPT = "UPDATE counted SET n = n + 1 WHERE id = {row};\n"
WATCH = 0.3  # seconds that each profiler looks
ENOUGH = 20  # samples of a profile

CAUSES = sleeps.CAUSES
LOCKS = ("a heavyweight lock", "a lightweight lock")
LOCK_CODE = ("LockAcquire", "LockAcquireExtended", "ProcSleep", "LWLockAcquire", "LWLockAcquireOrWait", "XactLockTableWait", "WaitOnLock", "JoinWaitQueue")
EVENTS = {"Lock": "a heavyweight lock", "LWLock": "a lightweight lock", "Client": "the client", "IO": "the log's flush"}
RUNNING = "nothing: it runs"


@dataclass(frozen=True)
class Seen:
    """What the instruments show of one load.

    tps          transactions per second, profilers running
    profile      CPU samples by function: share of all
    chains       context switches by what the backend was waiting for: share of all
    events       samples of pg_stat_activity by wait event: share of all
    """

    tps: float
    profile: pd.Series
    chains: pd.Series
    events: pd.Series


def profiles(chapter: Chapter) -> dict[str, Seen]:
    """Both loads under all three instruments. Needs perf and a server whose processes can be seen."""
    perf.require()
    if not chapter.server.owned:
        raise CannotMeasure("processes", "perf needs the process ids of a server's backends, and this server isn't ours to look into")
    server, clients = chapter.server, chapter.parameters.clients
    with loading.session(server) as connection, connection.transaction():
        loading.replace(connection, "counted", "CREATE TABLE counted (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off, fillfactor = 10)")
        connection.execute(f"INSERT INTO counted SELECT n, 0 FROM generate_series(0, {clients - 1}) AS n")
    return {load: _seen(chapter, server, load) for load in (FREE, QUEUED)}


def _seen(chapter: Chapter, server, load: str) -> Seen:
    for seconds in (1, 2, 4):  # a busy machine's profilers may come up when the load is nearly over, or too late
        try:
            seen, samples = _watched(chapter, server, load, seconds)
        except ServerError:
            continue
        if min(samples) >= ENOUGH:
            return seen
    return _watched(chapter, server, load, 2 * seconds)[0]


def _watched(chapter: Chapter, server, load: str, seconds: int) -> tuple[Seen, tuple[int, int]]:
    """One run under all instruments at once, and how many samples the two profiles have."""
    script, clients = SCRIPT.format(row=ROW[load]), chapter.parameters.clients
    run = partial(pgbench.run, server, script, clients=clients, jobs=2, seconds=seconds, protocol="prepared", seed=chapter.parameters.seed)
    runner = _Thread(run)
    runner.start()
    backends = _arrived(server, clients, runner)
    watchers = [
        _Thread(partial(perf.sample, backends, WATCH, frequency=1999)), _Thread(partial(sleeps.sample, backends, WATCH)), _Thread(partial(waits, server, 2 * WATCH)),
    ]  # fmt: skip
    for watcher in watchers:
        watcher.start()
    for thread in (*watchers, runner):
        threading.Thread.join(thread)  # all of them have ended before one of them raises
    for thread in (*watchers, runner):
        thread.join()
    sampled, chains, events = (watcher.result for watcher in watchers)
    profile = sampled.groupby("symbol")["samples"].sum()
    seen = Seen(runner.result.tps, profile / max(profile.sum(), 1), sleeps.by_cause(chains, CAUSES), events)
    return seen, (int(profile.sum()), int(chains["samples"].sum()))


class _Thread(threading.Thread):
    """A thread that keeps what its function returns, and raises in `join` what it raised."""

    def __init__(self, function: Callable):
        super().__init__(daemon=True)
        self._function, self.result, self._error = function, None, None

    def run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # handed on to whoever joins
            self._error = error

    def join(self, timeout: float | None = None):
        super().join(timeout)
        if self._error:
            raise self._error


_OURS = "query LIKE 'UPDATE counted%' AND pid <> pg_backend_pid() AND datname = current_database()"


def _arrived(server, clients: int, runner: threading.Thread) -> list[int]:
    """The backends of all clients, once they are at work."""
    while len(found := _backends(server)) < clients and runner.is_alive():
        time.sleep(0.01)
    return found


def _backends(server) -> list[int]:
    with server.connect() as connection:
        return [pid for (pid,) in connection.execute(f"SELECT pid FROM pg_stat_activity WHERE {_OURS}")]


def waits(server, seconds: float, interval: float = 0.005) -> pd.Series:
    """Share of the looks at pgbench's backends by wait event ("LWLock: WALWrite"), or `RUNNING`."""
    query = f"SELECT coalesce(wait_event_type || ': ' || wait_event, '{RUNNING}') FROM pg_stat_activity WHERE {_OURS}"
    seen: Counter[str] = Counter()
    with server.connect() as connection:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            seen.update(event for (event,) in connection.execute(query))
            time.sleep(interval)
    return pd.Series(seen, dtype=float).sort_values(ascending=False) / max(seen.total(), 1)


def in_lock_code(seen: Seen) -> float:
    """Share of the CPU samples in functions of the lock manager."""
    return float(seen.profile.reindex(LOCK_CODE).fillna(0).sum())


def by_event(seen: Seen) -> pd.Series:
    """The wait events in the words of `CAUSES`."""
    words = [EVENTS.get(event.partition(":")[0], "other") if event != RUNNING else RUNNING for event in seen.events.index]
    return seen.events.groupby(words).sum()


def profile_facts(found: dict[str, Seen] | None) -> dict[str, bool] | None:
    """The claim that sleeping on locks doesn't show in a CPU profile, and does in one of context switches."""
    if found is None:
        return None
    free, queued = found[FREE], found[QUEUED]
    return {
        "waiting for the lock costs throughput": queued.tps < 0.8 * free.tps,
        "the CPU profile hardly shows the lock manager": in_lock_code(queued) - in_lock_code(free) < 0.1,
        "among the reasons to sleep the row's lock appears": bool(queued.chains.get(LOCKS[0], 0.0) - free.chains.get(LOCKS[0], 0.0) > 0.1),
    }


def tool_facts(chapter: Chapter) -> dict[str, bool]:
    """What today's user-visible tools say of lightweight locks, against what LWLOCK_STATS prints.

    The claim says that they don't reveal contention; each statement is true where that is still so.
    """
    with chapter.server.connect() as connection:
        version = chapter.server.version
        named = connection.execute("SELECT count(*) FROM pg_wait_events WHERE type = 'LWLock'").fetchone()[0] if version >= 170000 else int(version >= 90600)
        spinning = connection.execute("SELECT count(*) FROM pg_wait_events WHERE name = 'SpinDelay'").fetchone()[0] if version >= 170000 else int(version >= 130000)
        query = "SELECT count(*) FROM pg_class WHERE relkind = 'v' AND relname ~ '^pg_(stat|statio)_.*lwlock'"
        counted = connection.execute(query).fetchone()[0]
    return {
        "no view names the lightweight lock that a backend waits for": named == 0,
        "none shows that a backend spins": spinning == 0,
        "none counts how often a lightweight lock was taken": counted == 0,
    }
