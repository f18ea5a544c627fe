"""What task switches, messages and calls into the kernel cost, and the like within one process."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import clock

COSTS = ("switch", "message", "pointer", "call", "task")

# The other side of a ping-pong: sends back what it gets, on the processor that it is told.
_ECHO = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while letter := os.read(0, 1):
    os.write(1, letter)
"""


def costs(rounds: int = 2000) -> dict[str, float]:
    """Microseconds each of what `COSTS` names, on one processor.

    Two processes send each other a byte in turns over two pipes: a round takes two messages and two
    switches. What the same calls take when a process writes to itself is no switch. A message is
    the half of a round, the switch to its receiver included, as UNIX counted it in 1981. A
    switch of tasks stays in one process. CannotMeasure where none can be kept on a processor.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise CannotMeasure(
            "processor affinity", "This system can't keep two processes on one processor."
        )
    allowed = os.sched_getaffinity(0)
    processor = min(allowed)
    peer = subprocess.Popen(
        [sys.executable, "-S", "-c", _ECHO, str(processor)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert peer.stdin and peer.stdout  # they are pipes
    own_in, own_out = os.pipe()
    try:
        os.sched_setaffinity(0, {processor})
        _ping(peer.stdin.fileno(), peer.stdout.fileno(), 100)
        trip = _ping(peer.stdin.fileno(), peer.stdout.fileno(), rounds)
        alone = _ping(own_out, own_in, rounds)
    finally:
        os.sched_setaffinity(0, allowed)
        os.close(own_in)
        os.close(own_out)
        peer.stdin.close()
        peer.wait()
        peer.stdout.close()
    return {
        "switch": trip / 2 - alone,
        "message": trip / 2,
        "call": alone / 2,
        "pointer": _pointers(rounds),
        "task": _tasks(rounds),
    }


def _ping(to: int, back: int, rounds: int) -> float:
    """Microseconds of a round: a byte written and a byte read."""
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            os.write(to, b"x")
            os.read(back, 1)
    return 1e6 * watch.seconds / rounds


def _pointers(rounds: int) -> float:
    """Microseconds to move a buffer from one list to another, as MANGOS sends a message."""
    one = deque(bytearray(4096) for _ in range(8))
    other: deque[bytearray] = deque()
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            other.append(one.popleft())
            one.append(other.popleft())
    return 1e6 * watch.seconds / rounds / 2


def _tasks(rounds: int) -> float:
    """Microseconds to leave one task and resume another of the same address space."""

    def waiting() -> Iterator[None]:
        while True:
            yield

    task = waiting()
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            next(task)
    return 1e6 * watch.seconds / rounds / 2
