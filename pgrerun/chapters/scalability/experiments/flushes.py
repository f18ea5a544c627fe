"""How long a flush of a small file takes on this machine's own disk, while it has much to write."""

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import clock, machine, sessions
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.lab.testbed import Row, Testbed, experiment

EVERY = 0.5  # seconds
LASTING = 15  # times the parameter `seconds`
CHUNK = 1 << 22  # bytes


@experiment(units={"seconds": "s", "watched": "s", "dirty": "MB"})
def small_flushes(bed: Testbed, gigabytes: float = 8) -> Iterator[Row]:
    """How long each flush of a small file takes, twice a second, while a large one is copied.

    On the disk of this machine, which nothing slows, under the kernel's own limits for what may
    wait for it: `dirty` is how much that is before the flush. It ends with the copy, of which a
    thousandth is written at profile ci, or after `LASTING` times the parameter `seconds`.
    """
    size = round(gigabytes * 1e9 / (1000 if bed.parameters.profile == "ci" else 1))
    place = base_directory()
    if (machine.filesystem(place) or {}).get("type") in ("tmpfs", "ramfs"):
        raise CannotMeasure("a disk", f"{place} is in memory; name another in PGRERUN_TMPDIR")
    if (free := shutil.disk_usage(place).free) < 2 * size:
        raise CannotMeasure("room on the disk", f"{free / 1e6:,.0f} MB are free in {place}")
    until = time.monotonic() + LASTING * bed.parameters.seconds
    with PrivateDirectory(place) as directory, open(directory.path / "small", "wb") as small:

        def copy(over: threading.Event) -> None:
            chunk = os.urandom(CHUNK)
            with open(directory.path / "large", "wb", buffering=0) as large:
                while large.tell() < size and not over.is_set():
                    large.write(chunk)
            copied.set()

        copied, number = threading.Event(), 0
        with sessions.meanwhile(copy):
            began = time.monotonic()
            while not number or (time.monotonic() < until and not copied.wait(EVERY)):
                waiting = dirty()
                small.write(bytes(8192))
                small.flush()
                with clock.stopwatch() as watch:
                    os.fsync(small.fileno())
                number += 1
                yield {
                    "number": number,
                    "seconds": watch.seconds,
                    "watched": time.monotonic() - began,
                    "dirty": waiting,
                }


def dirty() -> float | None:
    """MB that the system has in memory and not yet on the disk; None where it doesn't tell."""
    with suppress(OSError):
        told = re.findall(
            r"^(?:Dirty|Writeback): +(\d+) kB", Path("/proc/meminfo").read_text(), re.M
        )
        return sum(map(int, told)) / 1e3
    return None
