"""Where the miniature spends its time, routine by routine, and what special instructions give today."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.miniature import Miniature
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.ingres import INTERPRETER

# The miniature's functions under the names of Table 3; the others are added up.
_ROUTINES = {
    "getsymbol": "GETSYMBOL", "interpret": "INTERPRET", "_operate": "INTERPRET", "_typed": "INTERPRET", "_fetch": "INTERPRET",
    "read": "READ", "get": "READ", "put": "READ", "lines": "GET", "_entries": "GET", "following": "GET", "_between": "GET",
    "scan": "SCAN", "lookup": "SCAN", "range": "SCAN",
    "_main_page": "directory search", "_search": "directory search", "<lambda>": "directory search", "packed": "directory search",
    "run": "one-variable processor", "found": "one-variable processor", "_evaluators": "one-variable processor", "_candidates": "one-variable processor",
}  # fmt: skip
EVALUATING, OTHERS = ("GETSYMBOL", "INTERPRET"), "all else"
NAMES = (*dict.fromkeys(_ROUTINES.values()), OTHERS)
CLAIMS = ("ston-023", "ston-030")
QUERIES = ("b_3360", "c_3360", "d_3360", "e_3360", "f_3360", "g_3360", "h_3360", "i_3360")


def profile(chapter: Chapter, interval: float = 0.001) -> None:
    """The share of CPU samples in each routine while the interpreter runs all queries: a sample every millisecond of CPU time.

    A routine's own time, what it calls left out; a call into Python's own library counts for its caller. CannotMeasure
    outside of a main thread, where no signal comes.
    """
    if threading.current_thread() is not threading.main_thread():
        raise CannotMeasure("profiling signals", "Samples come by a signal, and only the main thread of a program gets it.")
    with Miniature() as mini:
        arms = [Arm("interpreter", partial(_sampled, mini, interval))]
        chapter.compare("profile", arms, {name: "share of samples" for name in NAMES}, warmup=0)


def _sampled(mini: Miniature, interval: float, block: Block) -> dict[str, float]:
    seen: Counter[str] = Counter()

    def sample(number: int, frame) -> None:
        seen[_ROUTINES.get(frame.f_code.co_name, OTHERS) if frame and "ingres" in frame.f_code.co_filename else OTHERS] += 1

    base = mini.base(INTERPRETER)
    earlier = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, interval, interval)
    try:
        for run in QUERIES:
            mini.run(base, run)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)
    return {name: seen[name] / max(seen.total(), 1) for name in NAMES}


def shares(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The share of each routine."""
    found = {name: chapter.median("profile", name, "interpreter") for name in NAMES}
    return None if None in found.values() else found


def evaluating(chapter: Chapter, more: tuple[str, ...] = ()) -> statistics.Interval | None:
    """The share of GETSYMBOL and INTERPRET together, with `more` routines."""
    tables = [chapter.table("profile", name) for name in (*EVALUATING, *more)]
    return None if tables[0].empty else statistics.median(sum(table["interpreter"] for table in tables), seed=chapter.parameters.seed)


def one_variable(chapter: Chapter) -> statistics.Interval | None:
    """The share of all that evaluates commands over one relation: its processor, its interpreter, fetching and scanning."""
    return evaluating(chapter, tuple(name for name in NAMES if name not in (*EVALUATING, OTHERS)))


# ---- instructions of a special purpose

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


def _dispatched() -> list[str]:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def instructions(chapter: Chapter) -> None:
    """A sort of integers by the same library with the processor's newer instructions, and with these switched off: seconds of CPU."""
    features = _dispatched()
    if not features:
        raise CannotMeasure("SIMD", "This processor has none of the instructions for which the numerical library has code of its own.")
    with ExitStack() as running:
        sorters = {name: running.enter_context(_sorter(off)) for name, off in ((NEW, ""), (OLD, " ".join(features)))}
        chapter.compare("instructions", [Arm(name, partial(_sorted, sorter)) for name, sorter in sorters.items()], {"sort": "s of CPU"})


NEW, OLD = "all instructions", "without the newer ones"


@contextmanager
def _sorter(disabled: str) -> Iterator[subprocess.Popen]:
    """A process that sorts, its library without these instructions. CannotMeasure if they can't be switched off."""
    environment = os.environ | ({"NPY_DISABLE_CPU_FEATURES": disabled} if disabled else {})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _SORT], env=environment, text=True, **pipes) as process:
        if not process.stdout.readline():
            raise CannotMeasure("SIMD", f"The library's code for newer instructions can't be switched off here: {process.stderr.read().strip()[-200:]}")
        yield process
        process.stdin.close()


def _sorted(sorter: subprocess.Popen, block: Block) -> dict[str, float]:
    print(block.seed, file=sorter.stdin, flush=True)
    return {"sort": float(sorter.stdout.readline())}


def new_instructions(chapter: Chapter) -> statistics.Interval | None:
    """Time without the newer instructions over time with them."""
    return chapter.ratio("instructions", "sort", OLD, NEW)


# ---- Table 4 again


def microcode() -> pd.DataFrame:
    """Table 4 recomputed: routine, share of CPU (%), saved (us), net of the call (us), gain of the routine and of all (%)."""
    table, profile = published.derived("four_tactics_microcode"), published.table("four_tactics_profile").percent
    rows = [(name, profile[name], row.saved_us, row.net_us, row.recomputed_routine, row.recomputed_overall) for name, row in table.iterrows()]
    return pd.DataFrame(rows, columns=["routine", "CPU (%)", "saved per call (us)", "less the call (us)", "gain of the routine (%)", "gain of all (%)"])


def microcode_facts() -> dict[str, bool]:
    """Whether the sum follows from the table, and is as small as the memorandum says."""
    gain, printed = published.derived("four_tactics_microcode").recomputed_overall.sum(), published.cell("four_tactics_said", "gain_percent", "value")
    return {"the sum of both routines is as printed, to a tenth": abs(gain - printed) <= 0.15, "it is no more than a quarter of what files gave": gain < published.cell("four_tactics_conclusions", "FS", "high") / 4}


def negative_facts() -> dict[str, bool]:
    """Whether the call of a microroutine costs more than the microcode saves."""
    return {f"{name} would lose": bool(row.net_us < 0) for name, row in published.derived("four_tactics_microcode").iterrows()}


# ---- the closing table

TACTICS = ("DC", "FS", "M", "MANGOS")
"""The keys of its rows in the order of what they gained, as `words.effort` has them."""


def ranking_facts(effort: dict[str, statistics.Interval | None], least: float = 1.25) -> dict[str, bool] | None:
    """Whether the two tactics that paid in 1981 pay by a quarter and more today, and the other two don't."""
    if None in effort.values():
        return None
    return {f"{name} pays": value.low >= least for name, value in list(effort.items())[:2]} | {f"{name} doesn't": value.high < least for name, value in list(effort.items())[2:]}
