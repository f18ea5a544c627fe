"""How often backends give up their processor while a load runs, by the kernel's count.

A voluntary switch is a sleep: until the client's next message comes, a lock is free, a page is
read. An involuntary one is a preemption: the backend could have gone on, and somebody else was
given its processor. A backend that was preempted by its own client finds the next message there
when it goes on and doesn't sleep for it, so under load there are fewer sleeps than messages.

A few of the backends are read, a few dozen times a second and from outside (a reading takes some
ten microseconds): loads may be timed meanwhile. For the call chains of switches see `sleeps.py`.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgrerun.lab.server import Server

Counts = NDArray[np.float64]
PER_TRANSACTION = {"voluntary": "per transaction", "involuntary": "per transaction"}

_COUNTS = re.compile(
    rb"State:\s+(\S).*\nvoluntary_ctxt_switches:\s+(\d+)\nnonvoluntary_ctxt_switches:\s+(\d+)",
    re.DOTALL,
)
# The load's backends are those that came after the one that asks; and for how long all have been
# there.
_NEWER = """
    SELECT array_agg(pid ORDER BY backend_start),
           extract(epoch FROM clock_timestamp() - max(backend_start))::float8
    FROM pg_stat_activity
    WHERE application_name = current_setting('application_name')
      AND backend_start > (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())
    HAVING count(*) >= %s"""


@dataclass
class Switches:
    """Switches of one backend while the load ran, the mean of `backends` that were watched.

    Complete when the block ends.
    """

    voluntary: float = 0.0
    involuntary: float = 0.0
    backends: int = 0

    def per_transaction(self, transactions: float) -> dict[str, float]:
        """The same for each of the `transactions` of one client.

        Empty if the load was over too soon to be watched.
        """
        return (
            {
                "voluntary": self.voluntary / transactions,
                "involuntary": self.involuntary / transactions,
            }
            if self.backends
            else {}
        )


@contextmanager
def counted(
    server: Server, clients: int, *, every: float = 0.005, most: int = 4
) -> Iterator[Switches]:
    """Count the switches of a load's backends from when all `clients` of them are connected to the
    end of each.

    `most` of them are read, `every` so many seconds; what a load of a few dozen readings does
    before the first and after the last is some per cent of it. CannotMeasure if the server's
    processes can't be seen from here.
    """
    server.require("processes")
    found, over = Switches(), threading.Event()
    totals: list[Counts] = []
    with server.connect() as connection:  # before the load, whose backends are those that follow
        watcher = threading.Thread(
            target=_watch, args=(connection, clients, every, most, over, totals), daemon=True
        )
        watcher.start()
        try:
            yield found
        finally:
            over.set()
            watcher.join()
    if totals:
        found.voluntary, found.involuntary = map(float, np.mean(totals, axis=0))
        found.backends = len(totals)


def _watch(
    connection: psycopg.Connection,
    clients: int,
    every: float,
    most: int,
    over: threading.Event,
    totals: list[Counts],
) -> None:
    """Wait for the load's backends and read some of them until it is `over`, into `totals`."""
    with ExitStack() as files:
        seen = None
        while seen is None and not over.wait(0.001):
            seen = connection.execute(_NEWER, [clients], prepare=True).fetchone()
        if seen is None:
            return
        pids, since = seen
        began = time.perf_counter() - since
        chosen = pids[:: max(1, len(pids) // most)][:most]
        opened = [file for pid in chosen if (file := _opened(pid, files)) is not None]
        totals.extend(_totals(opened, began, every, over))


def _opened(pid: int, files: ExitStack) -> int | None:
    try:
        file = os.open(f"/proc/{pid}/status", os.O_RDONLY)
    except OSError:  # it has ended
        return None
    files.callback(os.close, file)
    return file


def _totals(files: list[int], began: float, every: float, over: threading.Event) -> list[Counts]:
    """Voluntary and involuntary switches of each process, from when the load `began` to its end or
    until it is `over`.
    """
    first = {file: reading for file in files if (reading := _read(file)) is not None}
    last, alive = dict(first), list(first)
    while alive and not over.wait(every):
        now = {file: reading for file in alive if (reading := _read(file)) is not None}
        last, alive = last | now, list(now)
    found = []
    for file, reading in first.items():
        change = last[file] - reading
        if change[0] >= every:
            # What it did before its first reading, which may come late on a busy machine, and
            # after its last one, half an interval on average, it did at the same rate.
            missed = reading[0] - began + every / 2
            found.append(change[1:] * (1 + missed / change[0]))
    return found


def _read(file: int) -> Counts | None:
    """Seconds, voluntary and involuntary switches so far; None if the process has ended."""
    try:
        match = _COUNTS.search(os.pread(file, 8192, 0))
    except ProcessLookupError:
        return None
    if match is None or match[1] in b"ZX":
        return None
    return np.array([time.perf_counter(), int(match[2]), int(match[3])], dtype=float)
