"""Cache lines: what it costs when two processors change neighbouring bytes, or share nothing.

Two processes add to words of one shared memory, each to its own and to a few hundred at once, so
that the loop runs in numpy and not in Python. Whether they ever touch the same cache line
depends on the distance between their words alone.
"""

import mmap
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgrerun.errors import CannotMeasure

WORD = 8  # bytes
STRIDE = 512  # bytes from one word of a process to its next: more than a line, and than two
WORDS = 512

Words = NDArray[np.int64]


def require() -> Sequence[int]:
    """Two processors that may be used; CannotMeasure if there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise CannotMeasure(
            "2 processors",
            "two processes that share a cache line need a processor each, and only one may be used"
            " here",
        )
    return usable[:2]


def _together(work: Callable[..., None], given: Sequence[tuple[Any, ...]]) -> list[float]:
    """What processes tell that do some work at once, each with arguments of its own.

    After these come the barrier at which they wait for each other, and the queue that they tell.
    """
    # forked: a new interpreter for each would take longer than the measurement
    context = multiprocessing.get_context("fork")
    start, readings = context.Barrier(len(given)), context.SimpleQueue()
    workers = [context.Process(target=work, args=(*one, start, readings)) for one in given]
    for worker in workers:
        worker.start()
    found = [readings.get() for _ in workers]
    for worker in workers:
        worker.join()
    return found


def unshared_rate(processors: Sequence[int], rounds: int) -> float:
    """Rounds a second of processes that add to words of their own, one on each processor, in sum.

    They begin together, and have neither memory nor lock in common.
    """
    adders = [(np.zeros(WORDS, np.int64), one, rounds) for one in processors]
    return sum(1 / seconds for seconds in _together(_add, adders))


def false_sharing_cost(distance: int, rounds: int = 10_000) -> float:
    """Nanoseconds per addition while another process adds to words `distance` bytes further on.

    `distance` is a multiple of 8, from 8 to half of `STRIDE`.
    """
    if distance % WORD or not WORD <= distance <= STRIDE // 2:
        raise ValueError(
            f"the distance must be a multiple of {WORD} from {WORD} to {STRIDE // 2} bytes, not"
            f" {distance}"
        )
    memory = mmap.mmap(-1, STRIDE * (WORDS + 1))  # of both, which are forked
    adders = [
        (np.ndarray(WORDS, np.int64, memory, offset=place, strides=(STRIDE,)), one, rounds)
        for place, one in zip((0, distance), require())
    ]
    return 1e9 * float(np.mean(_together(_add, adders))) / WORDS


def _add(
    words: Words, processor: int, rounds: int, start: Barrier, readings: SimpleQueue[float]
) -> None:
    """Tells the seconds of a round."""
    os.sched_setaffinity(0, {processor})
    words += 1
    start.wait()
    began = time.perf_counter()
    for _ in range(rounds):
        np.add(words, 1, out=words)
    readings.put((time.perf_counter() - began) / rounds)


# entries of PostgreSQL 9.1's array of processes, and bytes of each of them (proc.h)
MEMBERS, STRUCT = 256, 832


def scan_cost(packed: bool, rounds: int = 10_000, idle: bool = False) -> float:
    """Nanoseconds per entry to read one word of each, as a snapshot does, while another process
    changes its neighbour.

    Packed, the words lie side by side and their former neighbours elsewhere; else each lies
    beside the word that is changed, in a structure of `STRUCT` bytes. With an `idle` neighbour
    nothing is changed.
    """
    reader, writer = require()
    context = multiprocessing.get_context("fork")
    memory = mmap.mmap(-1, (MEMBERS + 1) * (STRUCT + WORD))  # of both, which are forked
    place, stride = (MEMBERS * STRUCT + STRUCT, WORD) if packed else (0, STRUCT)
    hot = np.ndarray(MEMBERS, np.int64, memory, offset=place, strides=(stride,))
    cold = np.ndarray(MEMBERS, np.int64, memory, offset=WORD, strides=(STRUCT,))
    started, over, readings = context.Event(), context.Event(), context.SimpleQueue()
    changing = context.Process(target=_change, args=(cold, writer, started, over))
    if idle:
        over.set()
    scanning = context.Process(target=_scan, args=(hot, reader, rounds, started, readings))
    changing.start()
    scanning.start()
    found = float(readings.get())
    over.set()
    scanning.join()
    changing.join()
    return found


def _change(cold: Words, processor: int, started: Event, over: Event) -> None:
    os.sched_setaffinity(0, {processor})
    started.set()
    while not over.is_set():
        for _ in range(50):
            np.add(cold, 1, out=cold)


def _scan(
    hot: Words, processor: int, rounds: int, started: Event, readings: SimpleQueue[float]
) -> None:
    os.sched_setaffinity(0, {processor})
    started.wait()
    began = time.perf_counter_ns()
    for _ in range(rounds):
        np.add.reduce(hot)
    readings.put((time.perf_counter_ns() - began) / rounds / MEMBERS)
