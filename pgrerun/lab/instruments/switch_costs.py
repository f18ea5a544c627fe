"""What context switches, messages and calls into the kernel cost on this machine, and what a system
that does nothing else would need for them.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import callgrind, clock
from pgrerun.lab.instruments.cachelines import require as two_processors
from pgrerun.lab.server.binaries import c_compiler

COSTS = ("switch", "message", "pointer", "call", "task")

# The other side of a ping-pong: sends back what it gets, on the processor that it is told.
_ECHO = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while letter := os.read(0, 1):
    os.write(1, letter)
"""


def handoff_latency(rounds: int) -> dict[str, float]:
    """Microseconds that it costs that a process wakes another on the next processor.

    `elapsed` until the other runs, and `processor` time of both together. The two send each other
    one byte in turns, through pipes. CannotMeasure with one processor.
    """
    here, there = two_processors()
    with _echo(here, there) as (to, back):
        _ping(to, back, 1)  # until it is there
        used, began = time.thread_time(), time.perf_counter()
        _ping(to, back, rounds)
        elapsed, used = time.perf_counter() - began, time.thread_time() - used
    # one round is two handoffs, and the other process works as much as this one
    return {"elapsed": 1e6 * elapsed / rounds / 2, "processor": 1e6 * used / rounds}


def ipc_costs(rounds: int = 2000) -> dict[str, float]:
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
    processor = min(os.sched_getaffinity(0))
    own_in, own_out = os.pipe()
    try:
        with _echo(processor, processor) as (to, back):
            _ping(to, back, 100)
            trip = _ping(to, back, rounds)
            alone = _ping(own_out, own_in, rounds)
    finally:
        os.close(own_in)
        os.close(own_out)
    return {
        "switch": trip / 2 - alone,
        "message": trip / 2,
        "call": alone / 2,
        "pointer": _move_pointers(rounds),
        "task": _switch_tasks(rounds),
    }


@contextmanager
def _echo(here: int, there: int) -> Iterator[tuple[int, int]]:
    """Another process that sends back what it gets, on processor `there`, with this one on `here`.

    Yields the pipes' ends to write to it and to read from it.
    """
    allowed = os.sched_getaffinity(0)
    peer = subprocess.Popen(
        [sys.executable, "-S", "-c", _ECHO, str(there)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert peer.stdin and peer.stdout  # they are pipes
    try:
        os.sched_setaffinity(0, {here})
        yield peer.stdin.fileno(), peer.stdout.fileno()
    finally:
        os.sched_setaffinity(0, allowed)
        peer.stdin.close()
        peer.wait()
        peer.stdout.close()


def _ping(to: int, back: int, rounds: int) -> float:
    """Microseconds of a round: a byte written and a byte read."""
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            os.write(to, b"x")
            os.read(back, 1)
    return 1e6 * watch.seconds / rounds


def _move_pointers(rounds: int) -> float:
    """Microseconds to move a buffer from one list to another, as MANGOS sends a message."""
    one = deque(bytearray(4096) for _ in range(8))
    other: deque[bytearray] = deque()
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            other.append(one.popleft())
            one.append(other.popleft())
    return 1e6 * watch.seconds / rounds / 2


def _switch_tasks(rounds: int) -> float:
    """Microseconds to leave one task and resume another of the same address space."""

    def waiting() -> Iterator[None]:
        while True:
            yield

    task = waiting()
    with clock.stopwatch() as watch:
        for _ in range(rounds):
            next(task)
    return 1e6 * watch.seconds / rounds / 2


def bare_instructions() -> dict[str, float]:
    """Instructions of a `switch` of tasks that share an address space, and of a `message`.

    Of bare_system.c, compiled here and counted by callgrind. CannotMeasure without valgrind or a C
    compiler, and for a processor that isn't an x86-64.
    """
    if platform.machine() != "x86_64":
        raise CannotMeasure("x86-64", "the switch is written in assembler for an x86-64")
    callgrind.require()
    compiler = c_compiler("there is no compiler for the few lines that are counted")
    with tempfile.TemporaryDirectory() as folder:
        program, counts = Path(folder) / "bare_system", Path(folder) / "counts"
        source = files(__package__).joinpath("bare_system.c").read_text()
        build = [compiler, "-O2", "-no-pie", "-x", "c", "-o", str(program), "-"]
        subprocess.run(build, input=source, text=True, capture_output=True, check=True)
        count = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", str(program)]
        subprocess.run(count, capture_output=True, check=True)
        found = callgrind.read_dump(counts.read_text())
    # valgrind takes a switch of stacks for a recursion and gives it two names
    name = found["function"].str.partition("'")[0]
    executed = found.groupby(name)["exclusive"].sum()
    return {
        "switch": float(executed["task_switch"]) / 2000,
        "message": float(executed["message"]) / 1000,
    }
