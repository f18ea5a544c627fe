"""What Linux has counted of one process or thread until now (proc(5)).

For processes that aren't a server's: this one, and a backend that somebody else talks to. The
processes of a server of ours together are `processes`'.
"""

import re
import resource
from pathlib import Path

from pgrerun.errors import CannotMeasure

THREAD = Path("/proc/thread-self")
"""The thread that asks."""


def require() -> None:
    """CannotMeasure where Linux's process table isn't there."""
    if not (THREAD / "io").exists():
        raise CannotMeasure(
            "process table", "Task switches are counted in Linux's process table, which isn't here."
        )


def counts(name: str, text: str) -> list[int]:
    """The counts in the kernel's words whose name ends like this (a regular expression)."""
    return [int(found) for found in re.findall(rf"{name}:\s*(\d+)", text)]


def switches(process: Path) -> int:
    """Task switches, voluntary and involuntary ones.

    Both, as a process that is woken may take the processor from whoever has woken it.
    """
    return sum(counts("ctxt_switches", (process / "status").read_text()))


def calls(process: Path) -> int:
    """Calls of the kernel that read or write files and pipes; sockets don't count."""
    return sum(counts("sysc[rw]", (process / "io").read_text()))


def fetched(process: Path = THREAD) -> int:
    """Bytes that were fetched from storage for it. CannotMeasure where the kernel doesn't say."""
    try:
        [count] = counts(r"\nread_bytes", (process / "io").read_text())
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


def waits() -> int:
    """Voluntary task switches of this process: how often it has gone to sleep."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
