"""A file system of its own: what INGRES asked of its disk, and what reading a raw file costs."""

import random
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.miniature import LONG, Miniature
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.ingres import THREADED
from pgrerun.lab.ingres.benchmark import PAGES, TRACKS, WIDE_QUERIES
from pgrerun.lab.ingres.files import Request
from pgrerun.lab.instruments import cold_files

# ---- the benchmark


class Requests(NamedTuple):
    """What one run asked of the disk, in order, and how many pages it worked on."""

    trace: list[Request]
    touched: int


def requests(filling: float | None = None) -> dict[str, dict[str, Requests]]:
    """Requests of each long run from an empty cache, by the files' kind (PAGES, TRACKS). Exact.

    With a `filling` those with a key only, on PARTS hashed on it, main pages filled to that part.

    The miniature's walk through the pages is INGRES's, and so is the list of pages that it asks
    for; only how long it computes meanwhile is Python's, and isn't used.
    """
    found: dict[str, dict[str, Requests]] = {}
    for files in (PAGES, TRACKS):
        with Miniature(files) as mini:
            base, runs, reads = mini.base(THREADED), LONG, mini.cache.reads
            if filling:
                base = mini.hashed(filling)
                runs = tuple(run for run in LONG if run[0] in WIDE_QUERIES)
            for run in runs:
                mini.run(base, run, warm=False)
                found.setdefault(run, {})[files] = Requests(reads.trace, reads.touched)
    return found


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

IN_ORDER, SHUFFLED, SMALL, CACHED, TRACK, TRACK_DIRECT, LARGE, LARGE_DIRECT, AHEAD = (
    "in order, 8 kB, read ahead by nobody",
    "blocks shuffled, 8 kB, likewise",
    "from the cache, 1 kB",
    "from the cache, 8 kB",
    "in order, 16 kB, read ahead by nobody",
    "the same, into user space",
    "in order, 128 kB, read ahead by nobody",
    "in order, 128 kB, into user space",
    "in order, 16 kB, read ahead by the kernel",
)


class Reading(NamedTuple):
    """How a file is read: so many kB at a time, past the cache or from it, or ahead by it."""

    kilobytes: int
    shuffled: bool = False
    direct: bool = False
    warm: bool = False
    ahead: bool = True


READINGS = {
    IN_ORDER: Reading(8, direct=True),
    SHUFFLED: Reading(8, shuffled=True, direct=True),
    SMALL: Reading(1, warm=True),
    CACHED: Reading(8, warm=True),
    TRACK: Reading(16, ahead=False),  # a track was sixteen blocks of a kB (section 4.1)
    TRACK_DIRECT: Reading(16, direct=True),
    LARGE: Reading(128, ahead=False),
    LARGE_DIRECT: Reading(128, direct=True),
    AHEAD: Reading(16),
}


@experiment(claims=["ston-031", "ston-032", "ston-033"])
def raw(chapter: Chapter) -> None:
    """One file read whole in several ways; the operating system has forgotten it, or has it all.

    For a MB: milliseconds of wall clock and of CPU, and how often the process waited; and the share
    of the time that it did.
    """
    megabytes = chapter.parameters.megabytes
    units = dict.fromkeys(("wall", "cpu"), "ms per MB") | {
        "waits": "per MB",
        "waiting": "share of the time",
    }
    with cold_files.scratch(megabytes) as path:
        variants = [
            Variant(name, partial(_read_all, path, megabytes, reading))
            for name, reading in READINGS.items()
        ]
        chapter.compare("raw files", variants, units, warmup=0)


def _read_all(path: Path, megabytes: int, reading: Reading, block: Block) -> dict[str, float]:
    size = reading.kilobytes * 1024
    places = list(range(0, megabytes << 20, size))
    if reading.shuffled:
        random.Random(block.seed).shuffle(places)
    spent = cold_files.read(
        path, places, size, direct=reading.direct, warm=reading.warm, ahead=reading.ahead
    )
    return {
        "wall": 1000 * spent.wall / megabytes,
        "cpu": 1000 * spent.cpu / megabytes,
        "waits": spent.waits / megabytes,
        "waiting": max(0.0, 1 - spent.cpu / spent.wall),
    }
