"""A sort by the numerical library, with the processor's newer instructions and without them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from pgrerun.errors import CannotMeasure

# Sorts whenever it gets a seed: what the library uses is decided once, when a process imports it.
_SORT = """
import sys, time
import numpy as np
print("ready", flush=True)
for line in sys.stdin:
    values = np.random.default_rng(int(line)).integers(0, 2**31 - 1, 400_000, dtype=np.int32)
    times = []
    for _ in range(3):
        copy = values.copy()
        started = time.process_time()
        copy.sort()
        times.append(time.process_time() - started)
    print(sorted(times)[1], flush=True)
"""


def features() -> list[str]:
    """The newer instructions that this processor has and the library has code of its own for."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


class Sorter:
    """A process that sorts; see `sorter`."""

    def __init__(self, seeds: IO[str], times: IO[str]):
        self._seeds, self._times = seeds, times

    def sort(self, seed: int) -> float:
        """CPU seconds of sorting 400,000 random integers, the median of three times."""
        print(seed, file=self._seeds, flush=True)
        return float(self._times.readline())


@contextmanager
def sorter(disabled: list[str]) -> Iterator[Sorter]:
    """A process whose library does without these instructions.

    CannotMeasure if they can't be switched off.
    """
    environment = dict(os.environ)
    if disabled:
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled)
    with subprocess.Popen(
        [sys.executable, "-c", _SORT],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr  # they are pipes
        if not process.stdout.readline():
            raise CannotMeasure(
                "SIMD",
                "The library's code for newer instructions can't be switched off here:"
                f" {process.stderr.read().strip()[-200:]}",
            )
        yield Sorter(process.stdin, process.stdout)
        process.stdin.close()
