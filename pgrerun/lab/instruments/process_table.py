"""The process table: what Linux has counted of processes (proc(5)).

Of one process or thread: this one, or a backend that somebody else talks to. And of all the
processes of a server together: an account of I/O that is independent of PostgreSQL's own
(`counters.py`). A backend that ends takes its /proc entry along, but the kernel adds its CPU time
and I/O to the postmaster that reaps it: so postmaster (children reaped included) plus living
children loses nothing, whatever came and went in between.
"""

import os
import re
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import Server
from pgrerun.lab.server.processes import process_stat

_TICK = os.sysconf("SC_CLK_TCK")
_INHERITED = [
    "cpu_user",
    "cpu_system",
    "rchar",
    "wchar",
    "syscr",
    "syscw",
    "read_bytes",
    "write_bytes",
]
_SWITCHES = {"voluntary_ctxt_switches": "switches", "nonvoluntary_ctxt_switches": "preemptions"}
_COUNTS = [*_INHERITED, *_SWITCHES.values()]

# -- of one process ------------------------------------------------------------------

THREAD = Path("/proc/thread-self")
"""The thread that asks."""


def require() -> None:
    """CannotMeasure where Linux's process table isn't there."""
    if not (THREAD / "io").exists():
        raise CannotMeasure(
            "process table", "Task switches are counted in Linux's process table, which isn't here."
        )


def parse_counts(name: str, text: str) -> list[int]:
    """The counts in the kernel's words whose name ends like this (a regular expression)."""
    return [int(found) for found in re.findall(rf"{name}:\s*(\d+)", text)]


def count_switches(process: Path) -> int:
    """Context switches so far, voluntary and involuntary ones.

    Both, as a process that is woken may take the processor from whoever has woken it.
    """
    return sum(parse_counts("ctxt_switches", (process / "status").read_text()))


def count_own_sleeps() -> int:
    """Voluntary context switches of this process: how often it has gone to sleep."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def count_calls(process: Path) -> int:
    """Calls of the kernel that read or write files and pipes; sockets don't count."""
    return sum(parse_counts("sysc[rw]", (process / "io").read_text()))


def bytes_fetched(process: Path = THREAD) -> int:
    """Bytes that were fetched from storage for it. CannotMeasure where the kernel doesn't say."""
    try:
        [count] = parse_counts(r"\nread_bytes", (process / "io").read_text())
    except (OSError, ValueError):
        raise CannotMeasure(
            "process I/O",
            "The kernel doesn't say what a process has fetched from storage (/proc/self/io).",
        ) from None
    return count


def processor_seconds(process: Path) -> float:
    """Seconds on a processor; up to date for a process that sleeps.

    From schedstat, which has nanoseconds where stat has ticks.
    """
    return int((process / "schedstat").read_text().split()[0]) / 1e9


# -- of a server's processes ---------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """Resources used: up to a moment (as `usage` returns it), or between two (`later - earlier`).

    `processes`: one row per pid with role, cpu_user, cpu_system (seconds); rchar,
    wchar (bytes passed by read and write calls on files and pipes; sockets don't
    count), syscr, syscw (those calls), read_bytes, write_bytes (bytes fetched from
    and headed for the block device); switches, preemptions (voluntary and
    involuntary context switches). The postmaster's row includes the processes that
    have ended, except for context switches, which the kernel doesn't pass on.
    """

    processes: pd.DataFrame

    def __sub__(self, earlier: "Usage") -> "Usage":
        now, then = self.processes, earlier.processes
        [master] = now.index[now["role"] == "postmaster"]
        if master not in then.index:
            raise ServerError(
                "The server was restarted between two readings of its processes; measure again."
            )
        change = now.copy()
        change[_COUNTS] -= then[_COUNTS].reindex(now.index, fill_value=0)
        # what the ended had used before the first reading is new in the postmaster's account only
        ended = then.index.difference(now.index)
        change.loc[master, _INHERITED] -= then.loc[ended, _INHERITED].sum()
        return Usage(change)

    @property
    def cpu_seconds(self) -> float:
        """User and system time of all processes, in steps of the kernel's tick (10 ms)."""
        return float(self.processes[["cpu_user", "cpu_system"]].to_numpy().sum())

    def kernel_share(self, role: str) -> float:
        """The kernel's share of the CPU time of the processes in a role.

        It is 0 where they used less than a tick.
        """
        used = self.processes.loc[self.processes["role"] == role, ["cpu_user", "cpu_system"]].sum()
        return float(used["cpu_system"] / max(used.sum(), 1 / _TICK))


def usage(server: Server) -> Usage:
    """What all processes of a server have used so far.

    Read twice around, so that no process is missed or counted twice. CannotMeasure
    if the server's processes aren't visible from here, ServerError if it isn't running.
    """
    server.require("processes")
    for _ in range(50):
        roles = server.pids()
        if not roles:  # not "nothing used": whoever subtracts two readings would believe it
            raise ServerError(
                f"{server.name} isn't running, so it has no processes to read. Start it and measure"
                " again."
            )
        rows = [_process(pid, role) for pid, role in roles.items()]
        if None not in rows and list(server.pids()) == list(roles):
            return Usage(pd.DataFrame(rows).set_index("pid"))
        time.sleep(0.02)
    raise ServerError(
        "Processes of the server come and go too fast for one reading of the process table; "
        "read it before and after a load, not during one that reconnects for every transaction."
    )


def _process(pid: int, role: str) -> dict[str, int | float | str] | None:
    """One process's account; None if it has ended, reaped or not."""
    folder = Path("/proc") / str(pid)
    try:
        stat = process_stat(pid)
        status = _lines(folder / "status")
        io = _lines(folder / "io")
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError:
        raise CannotMeasure(
            "processes",
            f"The process table's I/O counts of the server (process {pid}) may only be read by root"
            " or the account that the server runs as.",
        ) from None
    if stat[0] in "ZX":
        return None
    user, system, children_user, children_system = (int(ticks) / _TICK for ticks in stat[11:15])
    return {
        "pid": pid,
        "role": role,
        "cpu_user": user + children_user,
        "cpu_system": system + children_system,
        **{name: int(io[name]) for name in _INHERITED[2:]},
        **{name: int(status[line]) for line, name in _SWITCHES.items()},
    }


def _lines(path: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in path.read_text().splitlines())
