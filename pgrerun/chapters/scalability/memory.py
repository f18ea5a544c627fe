"""Memory that processors share: cache lines, the array of processes, and a buffer pool that is too small."""

from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability.bench import LOOKUP, drive, load, second, server
from pgrerun.chapters.scalability.locks import CROWD
from pgrerun.chapters.scalability.reading import clients
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import cachelines

DISTANCES = (8, 64, 256)  # bytes; the least and the largest of the talk's sizes of a line are the last two
ROUNDS = 1500
UNITS = {"time": "ns"}
SPREAD, PACKED = "spread words scanned", "packed words scanned"


def _bytes(distance: int) -> str:
    return f"{distance} bytes apart"


def lines(chapter: Chapter) -> None:
    """Two processes add to words that lie so many bytes apart, and one scans words beside which the other writes."""
    arms = [Arm(_bytes(distance), partial(lambda distance, block: {"time": cachelines.beside(distance, ROUNDS)}, distance)) for distance in DISTANCES]
    arms += [Arm(name, partial(lambda packed, block: {"time": cachelines.scanned(packed, ROUNDS)}, name == PACKED)) for name in (SPREAD, PACKED)]
    cachelines.require()
    chapter.compare("cache lines", arms, UNITS, warmup=0)


def same_line(chapter: Chapter) -> statistics.Interval | None:
    """Time of an addition whose neighbour in the same line is changed, over that of one in another line."""
    return chapter.ratio("cache lines", "time", _bytes(DISTANCES[0]), _bytes(DISTANCES[-1]))


def packing(chapter: Chapter) -> statistics.Interval | None:
    """Time to scan words spread over large structures over that to scan them packed."""
    return chapter.ratio("cache lines", "time", SPREAD, PACKED)


# ---- the buffer pool

FITS, SMALL = "fits", "does not fit"
SMALL_POOL = "2MB"
POOL_UNITS = {"throughput": "transactions/s"}


def pools(chapter: Chapter) -> None:
    """Lookups in a pool that holds all accounts and in one that holds a small part; the system caches the rest."""
    servers = {FITS: server(chapter), SMALL: second(chapter, shared_buffers=SMALL_POOL)}
    for on in servers.values():
        load(chapter, on)
    arms = [Arm(_pool(name, number), partial(_look, chapter, on, number)) for name, on in servers.items() for number in (1, CROWD)]
    chapter.compare("pools", arms, POOL_UNITS, warmup=0)


def _pool(name: str, number: int) -> str:
    return f"{name}, {clients(number)}"


def _look(chapter: Chapter, on, number: int, block: Block) -> dict[str, float]:
    return {"throughput": drive(chapter, on, LOOKUP, number, chapter.parameters.transactions, block.seed).tps}


def speedups(chapter: Chapter) -> pd.DataFrame | None:
    """Throughput of many clients over that of one, by pool, a row per block."""
    frame = chapter.table("pools", "throughput")
    if frame.empty:
        return None
    return pd.DataFrame({name: frame[_pool(name, CROWD)] / frame[_pool(name, 1)] for name in (FITS, SMALL)})


def deteriorates(chapter: Chapter) -> statistics.Interval | None:
    """Speed-up in the pool that holds everything over that in the small one."""
    found = speedups(chapter)
    return None if found is None else statistics.ratio(found[FITS], found[SMALL], seed=chapter.parameters.seed)
