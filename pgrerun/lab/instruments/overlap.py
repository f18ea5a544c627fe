"""The report's small program: read, compute, write, in one copy or several at once.

The 1990 report (section 3.2.2) wrote it to see how much of one process's waiting for the
disk another process's computation can fill, without a database system in between. This
module is that program (`python -m pgrerun.lab.instruments.overlap`, one copy) and the verb
that runs copies of it side by side on one processor.
"""

import hashlib
import json
import mmap
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server.cluster import OtherDisk

PAGE = 8192
PAGES = 256  # of each copy's file


@dataclass(frozen=True)
class Overlap:
    """What `copies` copies did together: seconds until the last one ended, processor share.

    `processor` is processor seconds of all copies over elapsed seconds of the one
    processor they shared (0 to 1), `request` the median of the seconds that a read or a write
    took, `between` the mean of those that a copy spent outside of them in a cycle.
    """

    copies: int
    elapsed: float
    processor: float
    request: float
    between: float


def calibrate(
    folder: Path,
    *,
    cycles: int,
    cpu: int = 0,
    busy: float = 0.5,
    disk: OtherDisk | None = None,
    worked: Callable[[], float] | None = None,
) -> int:
    """Rounds of computation per cycle at which one copy computes for this share of the time.

    "Parameters were adjusted so that the program did I/O around 50% of the time." `cycles` is the
    length of each of the trial runs; for the rest see `run`. `worked` says for how many seconds
    the disk has worked so far; without it all that isn't computed counts as waiting for it, also
    while others have the processor.
    """
    rounds = 1000
    for _ in range(3):  # each pass corrects the one before by proportion
        before = worked() if worked else 0.0
        alone = run(folder, copies=1, cycles=cycles, rounds=rounds, cpu=cpu, disk=disk)
        computed = alone.processor * alone.elapsed
        waited = worked() - before if worked else alone.elapsed - computed
        rounds = max(1, round(rounds * waited * busy / (1 - busy) / max(computed, 1e-9)))
    return rounds


def run(
    folder: Path,
    *,
    copies: int,
    cycles: int,
    rounds: int = 0,
    think: float = 0.0,
    cpu: int = 0,
    disk: OtherDisk | None = None,
) -> Overlap:
    """Run `copies` copies at once, all on processor number `cpu`, files in `folder`.

    Each does `rounds` of computation in a cycle and sleeps for `think` seconds. On the machine's
    own disk the files bypass the system's cache, or it would never be waited for: CannotMeasure
    where they can't. On another one (`disk`) they needn't.
    """
    files = [folder / f"overlap-{number}" for number in range(copies)]
    given = {"cycles": cycles, "rounds": rounds, "think": think, "cpu": cpu, "direct": disk is None}
    running: list[subprocess.Popen[str]] = []
    try:
        for file in files:
            file.write_bytes(os.urandom(PAGES * PAGE))
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", __name__, json.dumps(given | {"file": str(file)})],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | (disk.environment(folder) if disk else {}),
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
    request = statistics.median(taken for one in ended for taken in one["requests"])
    outside = sum(one["end"] - one["start"] - sum(one["requests"]) for one in ended)
    processor = sum(one["cpu"] for one in ended) / elapsed
    return Overlap(copies, elapsed, processor, request, outside / copies / cycles)


def _line(copy: subprocess.Popen[str]) -> str:
    """The next line that a copy prints; empty where it has ended."""
    return copy.stdout.readline() if copy.stdout else ""


def _go(copy: subprocess.Popen[str]) -> None:
    if copy.stdin:
        copy.stdin.write("go\n")
        copy.stdin.flush()


def _program(given: Mapping[str, Any]) -> None:
    os.sched_setaffinity(0, {given["cpu"]})
    # O_DIRECT: the disk, not the system's cache; O_DSYNC: a write counts once it is there.
    flags = os.O_RDWR | (os.O_DIRECT | os.O_DSYNC if given["direct"] else 0)
    try:
        descriptor = os.open(given["file"], flags)
    except OSError as error:
        folder = Path(given["file"]).parent
        print(
            f"a file in {folder} can't be written past the system's cache ({error.strerror})",
            flush=True,
        )
        return
    content = mmap.mmap(-1, PAGE)  # O_DIRECT wants an aligned buffer
    rounds, think = range(given["rounds"]), given["think"]
    print("ready", flush=True)
    sys.stdin.readline()
    page, work = memoryview(content), bytes(1024)
    requests, clock = [], time.monotonic
    start, cpu_start = clock(), time.process_time()
    for cycle in range(given["cycles"]):
        place = (cycle * 97 % PAGES) * PAGE
        read = clock()
        os.preadv(descriptor, [page], place)
        requests.append(clock() - read)
        for _ in rounds:
            hashlib.sha256(work)
        if think:
            time.sleep(think)
        written = clock()
        os.pwritev(descriptor, [page], place)
        requests.append(clock() - written)
    took = {"start": start, "end": clock(), "cpu": time.process_time() - cpu_start}
    print(json.dumps(took | {"requests": requests}), flush=True)


if __name__ == "__main__":
    _program(json.loads(sys.argv[1]))
