"""The report's small program: read, compute, write, in one copy or several at once.

The 1990 report (section 3.2.2) wrote it to see how much of one process's waiting for the
disk another process's computation can fill, without a database system in between. One copy
of that program is `overlap_program.py`; here is the verb that runs copies of it side by side on
one processor.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import overlap_program
from pgrerun.lab.instruments.overlap_program import PAGE, PAGES
from pgrerun.lab.server.cluster import OtherDisk

# By its path and without `site`: to import this package would take ten times as long as many a run.
PROGRAM = (sys.executable, "-I", "-S", overlap_program.__file__)


@dataclass(frozen=True)
class Overlap:
    """What copies did together: seconds until the last one ended, processor share.

    `processor` is processor seconds of all copies over elapsed seconds of the one
    processor they shared (0 to 1), `request` the median of the seconds that a read or a write
    took, `between` the mean of those that a copy spent outside of them in a cycle.
    """

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
                    [*PROGRAM, json.dumps(given | {"file": str(file)})],
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
            assert copy.stdin
            copy.stdin.write("go\n")
            copy.stdin.flush()
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
    return Overlap(elapsed, processor, request, outside / copies / cycles)


def _line(copy: subprocess.Popen[str]) -> str:
    """The next line that a copy prints; empty where it has ended."""
    return copy.stdout.readline() if copy.stdout else ""
