"""An idle server: how often its processes wake up, while the chapter runs on other servers."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from pgrerun.chapters.scalability.load import SQL
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import off_cpu
from pgrerun.lab.server import Cluster, builds, fetched
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

SETTLE = 15.0  # seconds until the WAL writer has noticed that nothing happens
# Seconds instead, where there is the time: the background writer looks at every buffer once, and
# autovacuum's first rounds write to the WAL (the talk's server had been idle for a few minutes).
FEW_MINUTES = 210.0
WINDOW = 60.0  # seconds at least of each reading, where there is the time
LEAST_WINDOWS = 5
EVERYBODY = "all together"
TODAY, RELEASES = "today", ("9.1", "9.2")
UNITS = {"per_second": "wake-ups/s", "rested": "s"}


class Watch:
    """Reads the wake-ups of an idle server's processes once a second, in the background.

    It is left alone for `rested` seconds before: minutes, where it is watched for as long.
    """

    def __init__(self, bed: Testbed, cluster: Cluster):
        hurried = bed.parameters.idle_seconds < FEW_MINUTES / 2
        self.cluster = cluster
        self.rested = SETTLE if hurried else FEW_MINUTES
        self.readings: list[off_cpu.WakeupReading] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        over = self._over.wait(self.rested)
        while not over:
            self.readings.append(off_cpu.read_wakeups(self.cluster.pids()))
            over = self._over.wait(1.0)

    def end(self, least: float) -> list[off_cpu.WakeupReading]:
        """Stop watching as soon as it has lasted `least` seconds."""
        while not self.readings or time.monotonic() - self.readings[0][0] < least:
            if not self._thread.is_alive():
                raise CannotMeasure("processes", "the idle server's processes couldn't be watched")
            time.sleep(0.1)
        self._over.set()
        self._thread.join()
        return self.readings


_watched: WeakKeyDictionary[Testbed, dict[str, Watch]] = WeakKeyDictionary()


def watch(bed: Testbed) -> dict[str, Watch]:
    """Start idle servers and watch them: today's, and the talk's where they are registered."""
    talks: list[str] = []
    with contextlib.suppress(CannotMeasure):  # without either today's is watched alone
        talks = builds.complete([[name] for name in RELEASES], fetched.build)
    servers = {TODAY: bed.programs} | {name: fetched.build(name) for name in talks}
    return {name: Watch(bed, bed.release(one, autovacuum="on")) for name, one in servers.items()}


@experiment(units={"setting": "text"}, needs=["restart"])
def idle_server(bed: Testbed) -> Iterator[Row]:
    """Start an idle server and watch it; nobody connects to it from here on.

    PostgreSQL 9.1 and 9.2 as well, where they are registered as builds. The rows are what it is
    set to, of all that makes a process wake up by the clock.
    """
    with bed.cluster(autovacuum="on").connect() as connection:
        rows = SQL.run(connection, "idle.clocks").fetchall()
    _watched[bed] = watch(bed)
    for name, setting in rows:
        yield {"name": name, "setting": setting}


@experiment(units=UNITS, needs=["restart"])
def wakeups(bed: Testbed) -> Iterator[Row]:
    """Wake-ups per second of each auxiliary process and of all together, a block a window of time.

    `rested` is for how many seconds the server had been idle before.
    """
    for name, one in (_watched.get(bed) or watch(bed)).items():
        yield from windows(bed, one.end(bed.parameters.idle_seconds), one.rested, name)


@experiment(units=UNITS | {"quiet": "share of the seconds"}, needs=["restart"])
def wakeups_between_rounds(bed: Testbed) -> Iterator[Row]:
    """Wake-ups per second of all together, without the seconds of autovacuum's rounds.

    A round is work. It starts a process, so that the postmaster wakes up, who has nothing else to
    do for an idle server: a second in which it did is left out, those of its own clock, one in a
    minute, among them. `quiet` is the share of the seconds that remain.
    """
    for name, one in (_watched.get(bed) or watch(bed)).items():
        yield from _between_rounds(bed, one.end(bed.parameters.idle_seconds), one.rested, name)


def _between_rounds(
    bed: Testbed, readings: list[off_cpu.WakeupReading], rested: float, server: str
) -> Iterator[Row]:
    rates = off_cpu.wakeup_rates(readings).drop(columns="role").sum().to_numpy()
    woken = [_forks(after) > _forks(before) for before, after in itertools.pairwise(readings)]
    quiet = ~np.array(woken)
    parts = np.array_split(np.arange(len(rates)), _windows(readings))

    def measure(block: Block, role: str) -> dict[str, float]:
        part = parts[block.index]
        found = rates[part][quiet[part]]
        return {
            "per_second": float(found.mean()) if len(found) else float("nan"),
            "rested": rested,
            "quiet": float(quiet[part].mean()),
        }

    yield from bed.compare(
        measure, {"role": [EVERYBODY]}, pairs=len(parts), warmup=0, fixed=True, server=server
    )


def _forks(reading: off_cpu.WakeupReading) -> float:
    """How often the postmaster has been woken so far, to start a process or by its end."""
    _, processes = reading
    return float(processes.loc[processes["role"] == "postmaster", "switches"].sum())


def _windows(readings: list[off_cpu.WakeupReading]) -> int:
    seconds = readings[-1][0] - readings[0][0]
    return min(max(LEAST_WINDOWS, int(seconds // WINDOW)), len(readings) - 1)


def windows(
    bed: Testbed, readings: list[off_cpu.WakeupReading], rested: float, server: str = TODAY
) -> Iterator[Row]:
    """Rows of `wakeups`, from readings in turn that are divided into windows of equal length."""
    many, last = _windows(readings), len(readings) - 1
    chosen = [readings[round(k * last / many)] for k in range(many + 1)]
    by_role = off_cpu.wakeup_rates(chosen).set_index("role")

    def measure(block: Block, role: str) -> dict[str, float]:
        each = by_role[block.index]
        rate = each.sum() if role == EVERYBODY else each[role]
        return {"per_second": float(rate), "rested": rested}

    yield from bed.compare(
        measure,
        {"role": [EVERYBODY, *by_role.index]},
        pairs=many,
        warmup=0,
        fixed=True,
        server=server,
    )
