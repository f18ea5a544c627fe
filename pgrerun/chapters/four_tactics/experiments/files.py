"""A file system of its own: what the kernel reads ahead, and what reading a raw file costs."""

import random
from collections.abc import Iterator

from pgrerun.lab.instruments import cold_files
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

_START = 50  # away from the file's start, where the kernel expects a scan
PATTERNS = {
    "one block": [_START],
    "two in a row": [_START, _START + 1],
    "eight far apart": [_START + 110 * n for n in range(8)],
    "40 in a row": list(range(_START, _START + 40)),
    # as a scan of main pages with overflow pages goes: away after every fifth block, and back
    "40, with jumps": [
        600 + 50 * (n // 6) if n % 6 == 5 else _START + n - n // 6 for n in range(48)
    ],
}


@experiment(units={"reads": "reads", "asked": "kB", "fetched": "kB"})
def kernel_ahead(bed: Testbed, megabytes: int = 4) -> Iterator[Row]:
    """What the kernel fetches from storage for a few reads of 4 kB on a cold file.

    CannotMeasure where the operating system keeps what it is asked to forget.
    """
    cold_files.require_forgettable()
    for name, blocks in PATTERNS.items():
        # a file each: what is still being fetched ahead can't be forgotten
        with cold_files.scratch(megabytes) as path:
            fetched = cold_files.fetched(path, blocks) // 1024
        asked = len(blocks) * cold_files.BLOCK // 1024
        yield {"pattern": name, "reads": len(blocks), "asked": asked, "fetched": fetched}


DIRECT, WARM, NOT_AHEAD = {"direct": True}, {"warm": True}, {"ahead": False}
# By name so many kB at a time, whether in any order, and what else `cold_files.read` is told.
READINGS: dict[str, tuple[int, bool, dict[str, bool]]] = {
    "in order, 8 kB, read ahead by nobody": (8, False, DIRECT),
    "blocks shuffled, 8 kB, likewise": (8, True, DIRECT),
    "from the cache, 1 kB": (1, False, WARM),
    "from the cache, 8 kB": (8, False, WARM),
    # a track was sixteen blocks of a kB (section 4.1)
    "in order, 16 kB, read ahead by nobody": (16, False, NOT_AHEAD),
    "the same, into user space": (16, False, DIRECT),
    "in order, 128 kB, read ahead by nobody": (128, False, NOT_AHEAD),
    "in order, 128 kB, into user space": (128, False, DIRECT),
    "in order, 16 kB, read ahead by the kernel": (16, False, {}),
}


@experiment(units={"wall": "ms/MB", "cpu": "ms/MB", "waits": "waits/MB", "waiting": ""})
def raw_files(bed: Testbed) -> Iterator[Row]:
    """One file read whole in several ways; the operating system has forgotten it, or has it all.

    For a MB: wall clock, CPU, and how often the process waited; and the share of its time that it
    did.
    """
    megabytes = bed.parameters.megabytes
    with cold_files.scratch(megabytes) as path:

        def measure(block: Block, reading: str) -> dict[str, float]:
            kilobytes, shuffled, how = READINGS[reading]
            size = kilobytes * 1024
            places = list(range(0, megabytes << 20, size))
            if shuffled:
                random.Random(block.seed).shuffle(places)
            spent = cold_files.read(path, places, size, **how)
            return {
                "wall": 1000 * spent.wall / megabytes,
                "cpu": 1000 * spent.cpu / megabytes,
                "waits": spent.waits / megabytes,
                "waiting": max(0.0, 1 - spent.cpu / spent.wall),
            }

        yield from bed.compare(measure, {"reading": list(READINGS)}, warmup=0)
