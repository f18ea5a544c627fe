"""What it costs that one process wakes another on the next processor."""

import os
import time
from dataclasses import dataclass

from pgrerun.lab.instruments.cachelines import require


@dataclass(frozen=True)
class Handoff:
    """Seconds of one handoff: `elapsed` until the other process runs, `processor` time of both
    together.
    """

    elapsed: float
    processor: float


def handoff(rounds: int = 1000) -> Handoff:
    """Two processes on two processors send each other one byte in turns, through pipes."""
    here, there = require()
    before = os.sched_getaffinity(0)
    (inbox, to_here), (outbox, to_there) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {there})
        for _ in range(rounds):
            os.read(outbox, 1)
            os.write(to_here, b"x")
        os._exit(0)
    try:
        os.sched_setaffinity(0, {here})
        used, began = time.thread_time(), time.perf_counter()
        for _ in range(rounds):
            os.write(to_there, b"x")
            os.read(inbox, 1)
        elapsed, used = time.perf_counter() - began, time.thread_time() - used
    finally:
        os.sched_setaffinity(0, before)
        for end in (inbox, to_here, outbox, to_there):
            os.close(end)
        os.waitpid(child, 0)
    # one round is two handoffs, and the other process works as much as this one
    return Handoff(elapsed / rounds / 2, used / rounds)
