"""Off-CPU time of backends: what they wait for, how often they are switched out, and where.

Four instruments. `sample_wait_events` asks pg_stat_activity while a load runs.
`count_context_switches` reads the kernel's counts of a load's backends. `sample_stacks` has perf
take the call chain of context switches. `read_wakeups` and `wakeup_rates` count how often
processes that idle wake up.

A voluntary switch is a sleep: until the client's next message comes, a lock is free, a page is
read. An involuntary one is a preemption: the backend could have gone on, and somebody else was
given its processor. A backend that was preempted by its own client finds the next message there
when it goes on and doesn't sleep for it, so under load there are fewer sleeps than messages.
"""

import itertools
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import psycopg
from numpy.typing import NDArray

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import perf, process_table
from pgrerun.lab.instruments.sessions import meanwhile
from pgrerun.lab.server import Server, releases
from pgrerun.lab.server.private import PrivateDirectory, base_directory

# -- wait events ---------------------------------------------------------------------

WAIT_COLUMNS = ["type", "event", "backends"]
_WAITING = """
    SELECT coalesce(wait_event_type, 'CPU'), coalesce(wait_event, 'running'), count(*)
    FROM pg_stat_activity
    WHERE {clients} AND state = 'active' AND pid <> pg_backend_pid()
      AND application_name = current_setting('application_name')
    GROUP BY 1, 2"""


@dataclass
class WaitEvents:
    """Samples of a `sample_wait_events` block; complete when the block ends.

    `frame`: type and event as in pg_stat_activity ("CPU", "running" for a backend that doesn't
    wait) and backends, their number on average over `samples`.
    """

    samples: int = 0
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=WAIT_COLUMNS))

    def require_frame(self) -> pd.DataFrame:
        """The frame, or CannotMeasure if not a single sample found anybody at work."""
        if not self.samples:
            raise CannotMeasure(
                "wait samples",
                "the load was over before a sample of what its backends wait for could be taken",
            )
        return self.frame


@contextmanager
def sample_wait_events(server: Server, every: float = 0.005) -> Iterator[WaitEvents]:
    """Sample the active backends of our own tools and connections every so many seconds while the
    block runs.

    A sample sees who waits, not how often; shares of many samples are shares of time. Sampling
    costs the server a little, so loads that are sampled aren't the ones that are timed.
    CannotMeasure before PostgreSQL 9.6, which doesn't say what they wait for.
    """
    releases.require(server.version, "wait_event")
    query = _WAITING.format(clients=releases.clients(server.version))
    waits = WaitEvents()
    seen: list[tuple[str, str, int]] = []

    def sample(connection: psycopg.Connection, over: threading.Event) -> None:
        # seen by all its functions at once, and a reading of its own each time
        while not over.wait(every):
            rows = connection.execute(query, prepare=True).fetchall()
            if rows:  # before and after the load there is nobody to see
                waits.samples += 1
                seen.extend(rows)

    # connected before the load, which may be short
    with server.connect() as connection, meanwhile(partial(sample, connection)):
        yield waits
    if seen:
        sums = pd.DataFrame(seen, columns=WAIT_COLUMNS).groupby(["type", "event"], as_index=False)
        frame = sums["backends"].sum()
        frame["backends"] /= waits.samples
        waits.frame = frame.sort_values("backends", ascending=False, ignore_index=True)


# -- context switches ----------------------------------------------------------------

# The load's backends are those that came after the one that asks; and for how long all have been
# there.
_NEWER = """
    SELECT array_agg(pid ORDER BY backend_start),
           extract(epoch FROM clock_timestamp() - max(backend_start))::float8
    FROM pg_stat_activity
    WHERE application_name = current_setting('application_name')
      AND backend_start > (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())
    HAVING count(*) >= %s"""


@contextmanager
def count_context_switches(server: Server, clients: int) -> Iterator[dict[str, float]]:
    """Count the switches of a load's backends from when all `clients` of them are connected to the
    end of each.

    What is given has, when the block ends, the voluntary and the involuntary ones of a backend
    while the load ran, the mean of those that were watched; nothing if the load was over too soon.
    Some backends are read, every few milliseconds and from outside, in some ten microseconds
    each: the load may be timed meanwhile. What a load of a few dozen readings does before the first
    and after the last is some per cent of it. CannotMeasure if the server's processes can't be
    seen from here.
    """
    server.require("processes")
    found: dict[str, float] = {}
    totals: list[NDArray[np.float64]] = []
    with (
        server.connect() as connection,  # before the load, whose backends are those that follow
        meanwhile(lambda over: totals.extend(_watch(connection, clients, over))),
    ):
        yield found
    if totals:
        means = map(float, np.mean(totals, axis=0))
        found.update(zip(("voluntary", "involuntary"), means, strict=True))


def _watch(
    connection: psycopg.Connection,
    clients: int,
    over: threading.Event,
    every: float = 0.005,
    most: int = 4,
) -> Iterator[NDArray[np.float64]]:
    """Voluntary and involuntary switches of `most` of a load's backends, read `every` so many
    seconds, each to its end or until it is `over`.
    """
    seen = None
    while seen is None and not over.wait(0.001):
        seen = connection.execute(_NEWER, [clients], prepare=True).fetchone()
    if seen is None:
        return
    pids, since = seen
    began = time.perf_counter() - since
    alive = pids[:: max(1, len(pids) // most)][:most]
    first: dict[int, NDArray[np.float64]] = {}
    last: dict[int, NDArray[np.float64]] = {}
    while alive:
        now = {pid: counts for pid in alive if (counts := _switches_so_far(pid)) is not None}
        alive, last, first = list(now), last | now, now | first
        if over.wait(every):
            break
    for pid, earliest in first.items():
        change = last[pid] - earliest
        if change[0] >= every:
            # What it did before its first reading, which may come late on a busy machine, and
            # after its last one, half an interval on average, it did at the same rate.
            missed = earliest[0] - began + every / 2
            yield change[1:] * (1 + missed / change[0])


def _switches_so_far(pid: int) -> NDArray[np.float64] | None:
    """Seconds, voluntary and involuntary switches so far; None if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    switches = process_table.parse_counts("ctxt_switches", text)
    if re.search(r"State:\s+[ZX]", text):
        return None
    return np.array([time.perf_counter(), *switches])


# -- where they go to sleep ----------------------------------------------------------

STACK = 4096  # bytes copied of each: enough for the inner dozen calls
STACK_COLUMNS = ["chain", "samples"]

# What a chain of PostgreSQL's calls means: the innermost of these functions decides.
CAUSES = {
    "LockAcquireExtended": "a heavyweight lock",
    "LockAcquire": "a heavyweight lock",
    "LWLockAcquire": "a lightweight lock",
    "LWLockAcquireOrWait": "a lightweight lock",
    "LWLockWaitForVar": "a lightweight lock",
    "issue_xlog_fsync": "the log's flush",
    "pg_fdatasync": "the log's flush",
    "fdatasync": "the log's flush",
    "secure_read": "the client",
    "pq_getbyte": "the client",
    "exit_to_user_mode_loop": "its turn on a processor",
}


def sample_stacks(pids: Iterable[int], seconds: float) -> pd.DataFrame:
    """Call chains of every twentieth context switch of processes while something else keeps them
    busy.

    A profile of the CPU clock (`perf.py`) sees a process only while it runs; this one sees the
    moment at which it stops. Columns: chain (function names from the innermost outwards, a tuple),
    samples; most first. Empty if nobody slept. CannotMeasure without perf, ServerError if the
    processes are gone.
    """
    perf.require()
    listed = ",".join(map(str, pids))
    with PrivateDirectory(base_directory()) as place:
        data = place.path / "data"
        done = perf.perf(
            *perf.RECORD, *stack_options(20), "-p", listed, "-o", data, "--", "sleep", seconds
        )
        if not data.exists():
            raise ServerError(
                f"The context switches of processes {listed} can't be sampled:"
                f" {done.stderr.strip()[-300:]}"
            )
        script = perf.perf("script", "-i", data, "-F", "comm,ip,sym")
    return parse_stacks(script.stdout)


def stack_options(every: int) -> tuple[str, ...]:
    """What makes perf take the call chain of every so-manieth context switch.

    The chain is copied from the stack (DWARF), because programs without frame pointers break perf's
    cheaper chains; that costs some kilobytes a switch, so not every switch is taken.
    """
    return "-e", "context-switches", "-c", str(every), "--call-graph", f"dwarf,{STACK}"


def samples_between(script: str, began: float, ended: float) -> str:
    """The samples of perf script (with -F time, recorded with -k mono) between two readings of
    `time.monotonic`.
    """
    times = ((re.search(r"(\d+\.\d+):", block), block) for block in script.split("\n\n"))
    return "\n\n".join(block for time, block in times if time and began <= float(time[1]) <= ended)


def parse_stacks(script: str) -> pd.DataFrame:
    """perf script's samples, separated by empty lines: a name, then an address and a function a
    line.
    """
    line = re.compile(r"^[ \t]+[0-9a-f]+ (.+?)(?: \(inlined\))?$", re.MULTILINE)
    chains = [tuple(line.findall(block)) for block in script.split("\n\n")]
    counted = pd.Series([chain for chain in chains if chain], dtype=object).value_counts()
    return pd.DataFrame(
        {"chain": counted.index, "samples": counted.to_numpy()}, columns=STACK_COLUMNS
    )


def share_by_cause(stacks: pd.DataFrame, causes: Mapping[str, str]) -> pd.Series:
    """Share of the switches by cause: `causes` maps a function to a name, and the innermost
    function that it knows decides.
    """
    names = [
        next((causes[function] for function in chain if function in causes), "other")
        for chain in stacks["chain"]
    ]
    counted = stacks["samples"].groupby(pd.Series(names, index=stacks.index, dtype=object)).sum()
    return (counted / max(counted.sum(), 1)).sort_values(ascending=False)


# -- wake-ups ------------------------------------------------------------------------

# when it was read (time.monotonic, seconds); by pid the columns role, switches
WakeupReading = tuple[float, pd.DataFrame]


def read_wakeups(roles: Mapping[int, str]) -> WakeupReading:
    """Voluntary context switches so far of processes, given with their roles, and when they were
    read.
    """
    switches = {}
    for pid in roles:
        with suppress(psutil.Error):  # a worker that has ended since
            switches[pid] = psutil.Process(pid).num_ctx_switches().voluntary
    return time.monotonic(), pd.DataFrame(
        {"role": pd.Series(roles), "switches": pd.Series(switches, dtype=float)}
    )


def wakeup_rates(readings: Sequence[WakeupReading]) -> pd.DataFrame:
    """Wake-ups per second by role: role, and a column (0, 1, ...) for each two readings in turn.

    Only of auxiliary processes: the postmaster and client backends are left out. How long they were
    watched, in seconds, stands in `attrs`.
    """
    columns = {}
    for k, ((began, before), (ended, after)) in enumerate(itertools.pairwise(readings)):
        columns[k] = (after["switches"] - before["switches"]).dropna() / (ended - began)
    frame = pd.DataFrame(columns)
    frame.insert(0, "role", readings[0][1]["role"])
    auxiliary = frame[~frame["role"].isin(["postmaster", "client backend"])]
    found = auxiliary.groupby("role", as_index=False).sum()
    found.attrs["seconds"] = readings[-1][0] - readings[0][0]
    return found
