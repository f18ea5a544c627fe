"""An operating system of its own: what task switches and messages cost today, and what of a command is the kernel's; travel.py counts by the way it takes."""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, processes
from pgrerun.relations import Parts
from pgrerun.server import Server

COST_CLAIMS = ("ston-048", "ston-049", "ston-054", "ston-055")
UNITS = {"switch": "us", "message": "us", "pointer": "us", "call": "us", "task": "us"}
COMMANDS = {"short": "SELECT qoh FROM parts WHERE pnum = 17", "long": "SELECT count(*) FROM parts WHERE qoh < ln(9.5::float8) * weight AND pname <> 'memory'"}

# The other side of a ping-pong: sends back what it gets, on the processor that it is told.
_ECHO = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while letter := os.read(0, 1):
    os.write(1, letter)
"""


def costs(chapter: Chapter, rounds: int = 2000) -> None:
    """A task switch and a message between two processes on one processor, a call into the kernel, a pointer between two queues, and a switch
    between two tasks of one process: microseconds each.

    A ping-pong over two pipes takes two messages and two switches; what the same calls take when a process writes
    to itself is no switch. A message is the half of a round trip, the switch to its receiver included, as
    UNIX counted it in 1981.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise CannotMeasure("processor affinity", "This system can't keep two processes on one processor.")
    chapter.compare("costs", [Arm("here", partial(_costs, rounds))], UNITS)


def _costs(rounds: int, block: Block) -> dict[str, float]:
    allowed = os.sched_getaffinity(0)
    here = min(allowed)
    peer = subprocess.Popen([sys.executable, "-S", "-c", _ECHO, str(here)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    own = os.pipe()
    try:
        os.sched_setaffinity(0, {here})
        _ping(peer.stdin.fileno(), peer.stdout.fileno(), 100)
        trip = _ping(peer.stdin.fileno(), peer.stdout.fileno(), rounds)
        alone = _ping(own[1], own[0], rounds)
    finally:
        os.sched_setaffinity(0, allowed)
        for descriptor in own:
            os.close(descriptor)
        peer.stdin.close()
        peer.wait()
        peer.stdout.close()
    return {"switch": max(trip / 2 - alone, 1e-3), "message": trip / 2, "call": alone / 2, "pointer": _pointers(rounds), "task": _tasks(rounds)}


def _ping(to: int, back: int, rounds: int) -> float:
    """Microseconds of a round: a byte written and a byte read."""
    started = time.perf_counter()
    for _ in range(rounds):
        os.write(to, b"x")
        os.read(back, 1)
    return 1e6 * (time.perf_counter() - started) / rounds


def _pointers(rounds: int) -> float:
    """Microseconds to take a buffer from one list and put it on another, as MANGOS sends a message."""
    one, other = deque(bytearray(4096) for _ in range(8)), deque()
    started = time.perf_counter()
    for _ in range(rounds):
        other.append(one.popleft())
        one.append(other.popleft())
    return 1e6 * (time.perf_counter() - started) / rounds / 2


def _tasks(rounds: int) -> float:
    """Microseconds to leave one task and resume another of the same address space that waits in its midst: MANGOS's process switch."""

    def waiting():
        while True:
            yield

    task = waiting()
    started = time.perf_counter()
    for _ in range(rounds):
        next(task)
    return 1e6 * (time.perf_counter() - started) / rounds / 2


def message_over_switch(chapter: Chapter) -> statistics.Interval | None:
    """What a message costs over what a task switch costs."""
    return _ratio(chapter, "message", "switch")


def message_over_pointer(chapter: Chapter) -> statistics.Interval | None:
    """A message between processes over a pointer that changes its list."""
    return _ratio(chapter, "message", "pointer")


def switch_over_task(chapter: Chapter) -> statistics.Interval | None:
    """A switch between processes over one between tasks that share an address space."""
    return _ratio(chapter, "switch", "task")


def _ratio(chapter: Chapter, above: str, below: str) -> statistics.Interval | None:
    tables = [chapter.table("costs", name) for name in (above, below)]
    if tables[0].empty:
        return None
    return statistics.ratio(*(table["here"] for table in tables), seed=chapter.parameters.seed)


def today(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """A switch and a message of a general operating system of today, in microseconds."""
    found = {name: chapter.median("costs", name, "here") for name in ("switch", "message")}
    return None if None in found.values() else found


def messages(chapter: Chapter) -> pd.DataFrame:
    """Messages of the wire protocol for commands whose answers differ in size: tuples, to the server, from it, of these with a tuple. Exact."""
    rows = []
    with chapter.server.connect() as connection:
        connection.prepare_threshold = None
        for tuples in (1, 10, 1000):
            with tempfile.TemporaryFile() as file:
                connection.pgconn.trace(file.fileno())
                connection.execute(f"SELECT n FROM generate_series(1, {tuples}) AS g(n)").fetchall()
                connection.pgconn.untrace()
                file.seek(0)
                sent, received, data = Counter(), 0, 0
                for line in file.read().decode("utf-8", "replace").splitlines():
                    side, _, rest = line.partition("\t")[2].partition("\t")
                    kind = rest.split("\t")[1] if "\t" in rest else rest
                    sent["to"] += side == "F"
                    received += side == "B"
                    data += side == "B" and kind.startswith("DataRow")
            rows.append((tuples, sent["to"], received, data))
    return pd.DataFrame(rows, columns=["tuples", "to the server", "from the server", "with a tuple"])


def message_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a command takes as many messages as in print, whatever it answers."""
    if found is None:
        return None
    total, printed = found["to the server"] + found["from the server"], published.table("four_tactics_access").messages
    return {
        "all commands take equally many messages": total.nunique() == 1,
        "without those that carry a tuple they do": (total - found["with a tuple"]).nunique() == 1,
        "the shortest takes four": bool(total.iloc[0] == printed.iloc[0]),
    }


# ---- what a command spends in the kernel and on messages


def load(chapter: Chapter, server: Server) -> None:
    """PARTS, as large as the parameter says, keyed on pnum."""
    Parts(chapter.parameters.tuples).load(server, "parts", "btree")


def kernel_share(chapter: Chapter) -> None:
    """User and kernel time of the server's processes while short and long commands run, and how long one takes."""
    server = chapter.server
    server.require("processes")
    load(chapter, server)
    arms = [Arm(name, partial(_spent, chapter, server, command)) for name, command in COMMANDS.items()]
    chapter.compare("kernel", arms, {"kernel": "share of CPU", "seconds": "s", "switches": "switches per command"}, warmup=0)


def _spent(chapter: Chapter, server: Server, command: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        before, count = processes.usage(server), 0
        with clock.stopwatch() as watch:
            until = time.perf_counter() + chapter.parameters.milliseconds / 1000
            while time.perf_counter() < until:
                connection.execute(command).fetchall()
                count += 1
        used = processes.usage(server) - before
    switches = _switches(used)
    return {"kernel": used.kernel_share("client backend"), "seconds": watch.seconds / count, "switches": switches / count}


def _switches(used: processes.Usage) -> int:
    """Of the backend: when it has answered it goes to sleep, or the client that it has woken takes its processor, and it is ready again before it could sleep."""
    return int(used.by_role.loc["client backend", ["switches", "preemptions"]].sum())


def kernel_of(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The kernel's share of the backend's CPU time, short and long commands."""
    found = {f"{name} commands": chapter.median("kernel", "kernel", name) for name in COMMANDS}
    return None if None in found.values() else found


def without_system(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """MANGOS's arithmetic with today's numbers: the time of a command over what is left without its switches' and messages' cost.

    A command takes as many switches as were counted, and two messages: itself and its answer.
    """
    seconds, switches = chapter.table("kernel", "seconds"), chapter.table("kernel", "switches")
    cost = today(chapter)
    if seconds.empty or cost is None:
        return None
    saved = (switches * cost["switch"].estimate + 2 * (cost["message"].estimate - cost["switch"].estimate)) / 1e6
    left = (seconds - saved).clip(lower=seconds / 1000)
    return {f"{name} commands": statistics.ratio(seconds[name], left[name], seed=chapter.parameters.seed) for name in COMMANDS}
