"""The stopwatch, and what reading it costs.

Only whole blocks of work are timed with it; load comes from `pgbench.py`, and
plans are never taken inside a timed block (`plans.py`).
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Watch:
    """Elapsed time of a `stopwatch()` block; nanoseconds stay None until the block ends."""

    nanoseconds: int | None = None

    @property
    def seconds(self) -> float:
        if self.nanoseconds is None:
            raise ValueError("the stopwatch is still running: read it after its block")
        return self.nanoseconds / 1e9


@contextmanager
def stopwatch() -> Iterator[Watch]:
    """Time a block with the monotonic clock; an exception inside leaves no reading."""
    watch = Watch()
    started = time.perf_counter_ns()
    yield watch
    watch.nanoseconds = time.perf_counter_ns() - started


def repeated(once: Callable[[], float], least: float) -> list[float]:
    """What `once` says in seconds each time, until that is `least` together; one time at least."""
    times: list[float] = []
    while not times or sum(times) < least:
        times.append(once())
    return times


def until(done: Callable[[], bool], patience: float, pause: float) -> bool:
    """Wait until something is `done`, which is asked every `pause` seconds.

    False if it wasn't for `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def cost(readings: int = 10_000) -> float:
    """Nanoseconds that one reading of the clock takes (median over ten rounds)."""
    clock = time.perf_counter_ns
    rounds = []
    for _ in range(10):
        started = clock()
        for _ in range(readings):
            clock()
        rounds.append((clock() - started) / readings)
    return statistics.median(rounds)
