"""Cache lines: what it costs when two processors change neighbouring bytes, or share nothing.

Two processes add to words of one shared memory, each to its own and to a few hundred at once, so
that the loop runs in numpy and not in Python. Whether they ever touch the same cache line
depends on the distance between their words alone.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.shared_memory import SharedMemory
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import numpy as np

from pgrerun.errors import CannotMeasure

WORD = 8  # bytes
STRIDE = 512  # bytes from one word of a process to its next: more than a line, and than two
WORDS = 512


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
    return sum(_together(_add_alone, [(one, rounds) for one in processors]))


def _add_alone(processor: int, rounds: int, start: Barrier, readings: SimpleQueue[float]) -> None:
    os.sched_setaffinity(0, {processor})
    words = np.zeros(WORDS, np.int64)
    start.wait()
    began = time.perf_counter()
    for _ in range(rounds):
        np.add(words, 1, out=words)
    readings.put(rounds / (time.perf_counter() - began))


def false_sharing_cost(distance: int, rounds: int = 10_000) -> float:
    """Nanoseconds per addition while another process adds to words `distance` bytes further on.

    `distance` is a multiple of 8, from 8 to half of `STRIDE`.
    """
    if distance % WORD or not WORD <= distance <= STRIDE // 2:
        raise ValueError(
            f"the distance must be a multiple of {WORD} from {WORD} to {STRIDE // 2} bytes, not"
            f" {distance}"
        )
    processors = require()
    memory = SharedMemory(create=True, size=STRIDE * (WORDS + 1))
    try:
        adders = zip((0, distance), processors)
        found = _together(_add, [(memory, place, one, rounds) for place, one in adders])
        return float(np.mean(found))
    finally:
        memory.close()
        memory.unlink()


def _add(
    memory: SharedMemory,
    place: int,
    processor: int,
    rounds: int,
    start: Barrier,
    readings: SimpleQueue[float],
) -> None:
    os.sched_setaffinity(0, {processor})
    words = np.ndarray(WORDS, np.int64, memory.buf, offset=place, strides=(STRIDE,))
    words += 1
    start.wait()
    began = time.perf_counter_ns()
    for _ in range(rounds):
        np.add(words, 1, out=words)
    readings.put((time.perf_counter_ns() - began) / rounds / WORDS)
    del words


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
    memory = SharedMemory(create=True, size=(MEMBERS + 1) * (STRUCT + WORD))
    try:
        started, over, readings = context.Event(), context.Event(), context.SimpleQueue()
        changing = context.Process(target=_change, args=(memory, writer, started, over))
        if idle:
            over.set()
        scanning = context.Process(
            target=_scan, args=(memory, packed, reader, rounds, started, readings)
        )
        changing.start()
        scanning.start()
        found = float(readings.get())
        over.set()
        scanning.join()
        changing.join()
        return found
    finally:
        memory.close()
        memory.unlink()


def _change(memory: SharedMemory, processor: int, started: Event, over: Event) -> None:
    os.sched_setaffinity(0, {processor})
    cold = np.ndarray(MEMBERS, np.int64, memory.buf, offset=WORD, strides=(STRUCT,))
    started.set()
    while not over.is_set():
        for _ in range(50):
            np.add(cold, 1, out=cold)
    del cold


def _scan(
    memory: SharedMemory,
    packed: bool,
    processor: int,
    rounds: int,
    started: Event,
    readings: SimpleQueue[float],
) -> None:
    os.sched_setaffinity(0, {processor})
    place, stride = (MEMBERS * STRUCT + STRUCT, WORD) if packed else (0, STRUCT)
    hot = np.ndarray(MEMBERS, np.int64, memory.buf, offset=place, strides=(stride,))
    started.wait()
    began = time.perf_counter_ns()
    for _ in range(rounds):
        np.add.reduce(hot)
    readings.put((time.perf_counter_ns() - began) / rounds / MEMBERS)
    del hot
