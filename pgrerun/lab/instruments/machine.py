"""The machine under the server: what it is, how fast its disk flushes, who else is using it."""

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgrerun.lab.instruments import clock
from pgrerun.lab.server.processes import children, process_stat

_READINGS = 10  # of processes that come and go meanwhile
_KTHREADD = 2  # the parent of the kernel's threads on Linux; in a container, any process or none


def describe(path: str | Path | None = None) -> dict[str, object]:
    """What a run record says of the machine; every value is JSON, unknown ones are None.

    `path` is where the server keeps its files (default: the directory for temporary
    files): its filesystem and flush time are those that count.
    """
    place = Path(path or tempfile.gettempdir())
    memory = psutil.virtual_memory()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "architecture": platform.machine(),
        "cpu_model": _cpu_model(),
        "cpus_usable": (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "cpus": psutil.cpu_count(),
        "cores": psutil.cpu_count(logical=False),
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "memory_bytes": memory.total,
        "swap_used_bytes": psutil.swap_memory().used,
        "filesystem": filesystem(place),
        "fdatasync_8k_seconds": fdatasync(place),
        "clock_reading_seconds": clock.cost() / 1e9,
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
    }


def filesystem(path: str | Path) -> dict[str, str] | None:
    """Type and mount options of the filesystem that holds a path; None if it can't be told."""
    path = Path(path).resolve()
    mounts = [
        mount for mount in psutil.disk_partitions(all=True) if path.is_relative_to(mount.mountpoint)
    ]
    if not mounts:
        return None
    mount = max(mounts, key=lambda mount: len(mount.mountpoint))
    return {"type": mount.fstype, "options": mount.opts}


def fdatasync(folder: str | Path, writes: int = 100) -> float | None:
    """Median seconds to overwrite 8 kB in place and have it on stable storage.

    What a commit waits for at least. None where the folder can't be written. A
    filesystem in memory answers in a few microseconds.
    """
    page = os.urandom(8192)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:  # without a name: nothing can stay
            os.pwrite(file.fileno(), page * 16, 0)
            os.fsync(file.fileno())
            times = []
            for number in range(writes):
                with clock.stopwatch() as watch:
                    os.pwrite(file.fileno(), page, 8192 * (number % 16))
                    os.fdatasync(file.fileno())
                times.append(watch.seconds)
    except OSError:
        return None
    return statistics.median(times)


def direct_io(folder: str | Path) -> bool:
    """Whether files in a folder can be read and written past the system's cache (O_DIRECT)."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.close(os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


@dataclass
class Load:
    """How busy others kept the machine during a block; filled when the block ends.

    `fraction`: share of all CPU time that went to processes which are neither this
    one nor its descendants, plus what the hypervisor took away; 0 to 1.
    """

    fraction: float = 0.0


@contextmanager
def other_load() -> Iterator[Load]:
    """Measure around a block how much of the machine others used.

    CPU time is counted in ticks of 10 ms, so blocks shorter than about a second
    are judged roughly; less than 0.1 s not at all (fraction 0). What the kernel does in interrupts
    and in threads of its own is nobody's: while a server flushes, most of it is done for that.
    """
    load = Load()
    before, threads = _readings(), kernel_threads()
    started = time.perf_counter()
    yield load
    judged = time.perf_counter() - started >= 0.1
    busy, total, ours = (after - earlier for after, earlier in zip(_readings(), before))
    # one that has ended takes its time with it
    kernel = sum(spent - threads.get(pid, 0.0) for pid, spent in kernel_threads().items())
    others = max(0.0, busy - ours - kernel)
    load.fraction = min(1.0, others / total) if judged and total else 0.0


def _readings() -> tuple[float, float, float]:
    """CPU seconds so far: busy (stolen included, interrupts not), all, ours."""
    times = psutil.cpu_times()
    idle = times.idle + sum(getattr(times, name, 0.0) for name in ("iowait", "irq", "softirq"))
    # guest time is part of user time already
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - idle, total, tree_seconds()


def kernel_threads() -> dict[int, float]:
    """CPU seconds so far of each of the kernel's own threads; empty where they can't be seen."""
    spent = {}
    with suppress(OSError):
        if Path(f"/proc/{_KTHREADD}/comm").read_text().strip() == "kthreadd":
            for pid in children(_KTHREADD):
                with suppress(OSError):
                    spent[pid] = cpu_seconds(pid)
    return spent


def tree_seconds() -> float:
    """CPU seconds of this process and its descendants, those that have ended included.

    One that ends while they are read would be missed, time and all: its parent was read before it
    took that over. So they are read until none has come or gone, which also finds one that
    another's end hid from a single reading. What is read can only lack time, so where they never
    rest the most that was seen is nearest.
    """
    most, before = 0.0, [os.getpid(), *descendants(os.getpid())]
    for _ in range(_READINGS):
        spent = 0.0
        for pid in before:
            with suppress(psutil.Error, OSError):
                spent += cpu_seconds(pid)
        most, after = max(most, spent), [os.getpid(), *descendants(os.getpid())]
        if after == before:
            break
        before = after
    return most


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and of those of its children that it has reaped."""
    if not sys.platform.startswith("linux"):
        return sum(psutil.Process(pid).cpu_times()[:4])
    # what psutil reads as well, once it has looked up when the process began
    return sum(map(int, process_stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> Iterator[int]:
    """Ids of the processes below one, by a single reading: compare it with the next one.

    To settle each process's children first would read the files of all of its threads twice as
    often.
    """
    for child in children(pid, settled=False):
        yield child
        yield from descendants(child)


def _distribution() -> str | None:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    return None


def _cpu_model() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or None


def _first_line(path: str) -> str | None:
    with suppress(OSError):
        return Path(path).read_text().splitlines()[0]
    return None
