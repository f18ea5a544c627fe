"""How long the machine's own disk takes to flush, and what others make it write meanwhile."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def flushes(folder: Path, seconds: float, size: int = 8192) -> np.ndarray:
    """Seconds that each flush of a small file took: write `size` bytes, fsync, again, for
    `seconds`.
    """
    path = Path(folder) / f"flushed-{os.getpid()}"
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    taken: list[float] = []
    try:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or not taken:
            os.pwrite(file, os.urandom(size), 0)
            began = time.perf_counter()
            os.fsync(file)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(file)
        path.unlink()
    return np.array(taken)


@contextmanager
def copying(folder: Path, megabytes: int) -> Iterator[None]:
    """Somebody else writes a large file into the same file system for as long as the block runs,
    and never flushes it.
    """
    path = Path(folder) / f"copied-{os.getpid()}"
    script = (
        f"while :; do dd if=/dev/zero of='{path}' bs=1M count={megabytes} conv=notrunc 2>/dev/null"
        " || exit; done"
    )
    writer = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(writer.pid, 15)
        writer.wait()
        path.unlink(missing_ok=True)
