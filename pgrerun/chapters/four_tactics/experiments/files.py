"""A file system of its own: the benchmark on cold files, and what reading a raw file costs."""

import random
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.miniature import RUNS, Miniature
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.ingres import INTERPRETER, THREADED
from pgrerun.lab.ingres.benchmark import ALONE, PAGES, TRACKS
from pgrerun.lab.instruments import cold_files

# ---- the benchmark

INTERPRETED = "UNIX, interpreted"
LONG = tuple(run for run in RUNS if run.endswith("_3360"))
TIMED = ("b_1", *LONG)
# dominated by the join itself, they are run as the print has them, and not otherwise
LONG_JOINS = ("f_3360", "h_3360")
_MOST = tuple(run for run in TIMED if run not in LONG_JOINS)
# variant to the miniature's files, its engine, and the runs
SYSTEMS = {
    PAGES: (PAGES, THREADED, TIMED),
    ALONE: (ALONE, THREADED, _MOST),
    TRACKS: (TRACKS, THREADED, TIMED),
    INTERPRETED: (PAGES, INTERPRETER, _MOST),
}
_UNITS = {"wall": "s", "cpu": "s of CPU", "reads": "reads"}


@experiment(
    claims=[
        "ston-018",
        "ston-035",
        "ston-036",
        "ston-038",
        "ston-039",
        "ston-040",
        "ston-046",
        "ston-059",
    ]
)
def cold(chapter: Chapter) -> None:
    """The runs of Tables 5 and 6 that have a relation, from files that nothing has cached.

    Wall clock, CPU and reads, as "wall e_3360" and so on. Qualifications are compiled, so that less
    of the time is Python's own; once more they are interpreted. CannotMeasure where the operating
    system keeps what it is asked to forget.
    """
    cold_files.require_forgettable()
    units = {f"{what} {run}": unit for run in TIMED for what, unit in _UNITS.items()}
    with ExitStack() as held:
        variants = []
        for name, (files, engine, runs) in SYSTEMS.items():
            mini = held.enter_context(Miniature(files))
            variants.append(Variant(name, partial(_all_runs, mini, engine, runs)))
        chapter.compare("cold files", variants, units, warmup=0)  # nothing is to be warm


def _all_runs(
    mini: Miniature, engine: str, runs: tuple[str, ...], block: Block
) -> dict[str, float]:
    base, spent = mini.base(engine), {}
    for run in runs:
        done = mini.run(base, run, warm=False)
        spent |= {f"{what} {run}": done[what] for what in _UNITS}
    return spent


# ---- the kernel's read-ahead

ONE, TWO, ROW, JUMPS = "one block", "two in a row", "40 in a row", "40, with jumps"
_START = 50  # away from the file's start, where the kernel expects a scan
PATTERNS = {
    ONE: [_START],
    TWO: [_START, _START + 1],
    "eight far apart": [_START + 110 * n for n in range(8)],
    ROW: list(range(_START, _START + 40)),
    # as a scan of main pages with overflow pages goes: away after every fifth block, and back
    JUMPS: [600 + 50 * (n // 6) if n % 6 == 5 else _START + n - n // 6 for n in range(48)],
}


@experiment(claims=["ston-037"])
def read_ahead(chapter: Chapter, megabytes: int = 4) -> pd.DataFrame:
    """What the kernel fetches from storage for a few reads of 4 kB on a cold file.

    Columns: pattern, reads, asked (kB), fetched (kB). CannotMeasure where the operating system
    keeps what it is asked to forget.
    """
    cold_files.require_forgettable()
    rows = []
    for name, blocks in PATTERNS.items():
        # a file each: what is still being fetched ahead can't be forgotten
        with cold_files.scratch(megabytes) as path:
            fetched = cold_files.fetched(path, blocks) // 1024
        rows.append((name, len(blocks), len(blocks) * cold_files.BLOCK // 1024, fetched))
    return pd.DataFrame(rows, columns=["pattern", "reads", "asked", "fetched"])


# ---- raw files

IN_ORDER, SHUFFLED, SMALL, LARGE, DIRECT = (
    "in order, 8 kB",
    "blocks shuffled, 8 kB",
    "in order, 1 kB",
    "in order, 128 kB",
    "the same, into user space",
)
READINGS = {
    IN_ORDER: {"kilobytes": 8},
    SHUFFLED: {"kilobytes": 8, "shuffled": True},
    SMALL: {"kilobytes": 1},
    LARGE: {"kilobytes": 128},
    DIRECT: {"kilobytes": 128, "direct": True},
}


@experiment(claims=["ston-031", "ston-032", "ston-033"])
def raw(chapter: Chapter) -> None:
    """One file read whole in several ways, after the operating system has forgotten it.

    For a MB: milliseconds of wall clock and of CPU, and voluntary task switches.
    """
    megabytes = chapter.parameters.megabytes
    units = {"wall": "ms per MB", "cpu": "ms per MB", "waits": "voluntary switches per MB"}
    with cold_files.scratch(megabytes) as path:
        variants = [
            Variant(name, partial(_read_all, path, megabytes, **reading))
            for name, reading in READINGS.items()
        ]
        chapter.compare("raw files", variants, units, warmup=0)


def _read_all(
    path: Path,
    megabytes: int,
    block: Block,
    *,
    kilobytes: int,
    shuffled: bool = False,
    direct: bool = False,
) -> dict[str, float]:
    size = kilobytes * 1024
    places = list(range(0, megabytes << 20, size))
    if shuffled:
        random.Random(block.seed).shuffle(places)
    spent = cold_files.read(path, places, size, direct=direct)
    return {
        "wall": 1000 * spent.wall / megabytes,
        "cpu": 1000 * spent.cpu / megabytes,
        "waits": spent.waits / megabytes,
    }


@experiment()
def sleeps(chapter: Chapter) -> pd.DataFrame:
    """Blocks of 8 kB read one by one past the cache, by whether the process went to sleep.

    Columns: slept, reads, microseconds (median). CannotMeasure where files can't be read so.
    """
    size, rows = 8 * 1024, []
    with cold_files.scratch(chapter.parameters.megabytes) as path:
        for place in range(0, path.stat().st_size, size):
            spent = cold_files.read(path, [place], size, direct=True)
            rows.append((spent.waits > 0, 1e6 * spent.wall))
    by = pd.DataFrame(rows, columns=["slept", "microseconds"]).groupby("slept", as_index=False)
    return by.agg(reads=("microseconds", "size"), microseconds=("microseconds", "median"))
