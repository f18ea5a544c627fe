"""Processes of servers and of ours, as the kernel lists them, and how they are ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from itertools import pairwise
from pathlib import Path

import psutil


def process_stat(pid: int) -> list[str]:
    """The kernel's line on a process from field 3 of proc_pid_stat(5), its state, on.

    OSError if there is none.

    The name (field 2) may hold spaces and brackets.
    """
    return read_proc(f"{pid}/stat").rpartition(")")[2].split()


def read_proc(name: str) -> str:
    """A file of the kernel's about processes, whole; OSError if there is none.

    All of a tree's are read around each measurement: so without Python's layers, which take three
    times as long as the kernel.
    """
    file = os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = iter(lambda: os.read(file, 1 << 16), b"")
        return b"".join(parts).decode(errors="surrogateescape")
    finally:
        os.close(file)


def children(pid: int, settled: bool = True) -> list[int]:
    """Ids of the processes that one has started and not yet reaped, oldest first.

    As the kernel lists them, thread by thread. psutil would read the whole process table,
    which costs more than many a measurement.

    settled: whether to read until two readings are equal, which only who compares them itself may
        leave out.
    """
    if not os.path.exists(
        f"/proc/{pid}/task/{pid}/children"
    ):  # not Linux, a kernel that doesn't list them, or none
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
        return []
    if not settled:
        return listed_children(pid)
    # a child that ends while the kernel walks its list may hide the next one: only two equal
    # readings count
    for before, latest in pairwise(listed_children(pid) for _ in range(20)):
        if before == latest:
            break
    return latest


def listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, read_proc(f"{pid}/task/{task}/children").split())
    return found


# a program that valgrind runs has the name of the tool; Spark's executors are Java's
_PROGRAM = re.compile(
    r"(postgres|initdb|psql|pgbench|pg_\w+|valgrind(\.bin)?|callgrind-\w+|memcheck-\w+|vgdb|java)$"
)


def processes(directory: Path) -> list[psutil.Process]:
    """PostgreSQL's processes, server and tools, and Spark's, that work in `directory`.

    A server's processes all stand in their data directory, also those whose postmaster
    is dead, and tools in `scratch`. Neither holds for anybody else's: the directory is
    ours. A person's shell may stand there as well, so the program's name counts too.
    """
    found = []
    inside = f"{directory.resolve()}/"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if _PROGRAM.match(process.name()) and process.cwd().startswith(inside):
                found.append(process)
    return found


def end_processes(directory: Path) -> None:
    """End the server processes in `directory`: immediate shutdown, then SIGKILL.

    SIGQUIT first, because a postmaster that ends itself also returns its shared memory. Java takes
    it for a question, and has nothing to return.
    """
    found = processes(directory)
    ids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.Error):
            if process.name() == "java":
                process.kill()
            elif process.ppid() not in ids:
                process.send_signal(signal.SIGQUIT)
    alive = await_end(found, patience=8)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    await_end(alive, patience=5)


def await_end(running: list[psutil.Process], patience: float) -> list[psutil.Process]:
    """Wait up to `patience` seconds for processes to end; returns those that didn't.

    A zombie has ended: in a container whose process 1 reaps none it stays one for ever.
    """
    deadline = time.monotonic() + patience
    while running := [process for process in running if not has_ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return running


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
