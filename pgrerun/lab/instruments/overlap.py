"""The report's small program: read, compute, write, in one copy or several at once.

The 1990 report (section 3.2.2) wrote it to see how much of one process's waiting for the
disk another process's computation can fill, without a database system in between. This
module is that program (`python -m pgrerun.lab.instruments.overlap`, one copy) and the verb
that runs copies of it side by side on one processor.
"""

import errno
import hashlib
import json
import mmap
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pgrerun.errors import CannotMeasure

PAGE = 8192
PAGES = 256  # of each copy's file


@dataclass(frozen=True)
class Overlap:
    """What `copies` copies did together: seconds until the last one ended, processor share.

    `processor` is processor seconds of all copies over elapsed seconds of the one
    processor they shared (0 to 1).
    """

    copies: int
    elapsed: float
    processor: float


def calibrate(folder: Path, *, cycles: int, cpu: int = 0) -> int:
    """Rounds of computation per cycle at which one copy waits for its I/O half of the time.

    "Parameters were adjusted so that the program did I/O around 50% of the time." `cycles` is the
    length of each of the trial runs. Raises CannotMeasure where files in `folder` can't bypass the
    system's cache, since the disk would never be waited for.
    """
    rounds = 1000
    for _ in range(3):  # each pass corrects the one before by proportion
        alone = run(folder, copies=1, cycles=cycles, rounds=rounds, cpu=cpu)
        waited = alone.elapsed * (1 - alone.processor)
        computed = alone.elapsed * alone.processor
        rounds = max(1, round(rounds * waited / max(computed, 1e-9)))
    return rounds


def run(folder: Path, *, copies: int, cycles: int, rounds: int, cpu: int = 0) -> Overlap:
    """Run `copies` copies at once, all on processor number `cpu`, files in `folder`."""
    command = [
        sys.executable,
        "-m",
        "pgrerun.lab.instruments.overlap",
        str(cycles),
        str(rounds),
        str(cpu),
    ]
    files = [folder / f"overlap-{number}" for number in range(copies)]
    running: list[subprocess.Popen[str]] = []
    try:
        for file in files:
            running.append(
                subprocess.Popen(
                    [*command, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
        ready = [_line(copy) for copy in running]
        if refused := next((line for line in ready if line != "ready\n"), None):
            raise CannotMeasure(
                "direct I/O", f"The read-compute-write program can't run here: {refused.strip()}."
            )
        for copy in running:
            _go(copy)
        ended = [json.loads(_line(copy)) for copy in running]
    finally:
        for copy in running:
            copy.kill()
            copy.communicate()
        for file in files:
            file.unlink(missing_ok=True)
    elapsed = max(one["end"] for one in ended) - min(one["start"] for one in ended)
    return Overlap(copies, elapsed, sum(one["cpu"] for one in ended) / elapsed)


def _line(copy: subprocess.Popen[str]) -> str:
    """The next line that a copy prints; empty where it has ended."""
    return copy.stdout.readline() if copy.stdout else ""


def _go(copy: subprocess.Popen[str]) -> None:
    if copy.stdin:
        copy.stdin.write("go\n")
        copy.stdin.flush()


def _program(cycles: int, rounds: int, cpu: int, file: str) -> None:
    os.sched_setaffinity(0, {cpu})
    try:
        # O_DIRECT: the disk, not the system's cache; O_DSYNC: a write counts once it is there.
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_DSYNC, 0o600)
        content = mmap.mmap(-1, PAGES * PAGE)  # O_DIRECT wants an aligned buffer
        if os.pwritev(descriptor, [content], 0) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        print(
            f"a file in {Path(file).parent} can't be written past the system's cache"
            f" ({error.strerror})",
            flush=True,
        )
        return
    print("ready", flush=True)
    sys.stdin.readline()
    page, work = memoryview(content)[:PAGE], bytes(1024)
    start, cpu_start = time.monotonic(), time.process_time()
    for cycle in range(cycles):
        place = (cycle * 97 % PAGES) * PAGE
        os.preadv(descriptor, [page], place)
        for _ in range(rounds):
            hashlib.sha256(work)
        os.pwritev(descriptor, [page], place)
    result = {"start": start, "end": time.monotonic(), "cpu": time.process_time() - cpu_start}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    _program(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
