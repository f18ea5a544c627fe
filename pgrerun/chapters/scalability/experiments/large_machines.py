"""What processors cost each other here, and machines with more of them, simulated (`model.py`)."""

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability import model
from pgrerun.chapters.scalability.experiments import locks
from pgrerun.chapters.scalability.experiments.load import by_clients, one_per_processor
from pgrerun.chapters.scalability.model import (
    AFTER,
    BEFORE,
    FIRST,
    NO_MESSAGES,
    OLD_LINUX,
    RELEASES,
    TALK,
    Costs,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import cachelines, switching
from pgrerun.lab.models import contention

PROCESSORS, SMALL, LARGE = (int(TALK[row]) for row in ("cores", "cores_small", "cores_large"))
SWEEP = (1, 8, 16, 20, 24, 32, 64)  # clients
SEEDS = 5
LINES = tuple(nanoseconds * 1e-9 for nanoseconds in (10, 40, 80, 120, 150))
HERE, THERE = "cache lines as here", "cache lines as the talk's gain asks"


@experiment()
def handoffs(chapter: Chapter) -> None:
    """What one process pays to wake another on the next processor, in microseconds."""

    def measure(block: Block) -> dict[str, float]:
        cost = switching.handoff(rounds=400)
        return {"elapsed": cost.elapsed * 1e6, "processor": cost.processor * 1e6}

    chapter.compare("handoff", [Variant("handoff", measure)], {"elapsed": "µs", "processor": "µs"})


def calibrated(chapter: Chapter) -> list[Costs]:
    """The model's costs, one set for each block in which they were measured.

    A visit is half of what taking and releasing a lock costs a session alone. Two sessions that
    want the same lock take turns, so the lock is passed on four times while each takes and releases
    it once; what that takes longer than four visits is the fetching of the lock's cache lines.
    A lookup's work is what every processor does for it, pgbench's part included.
    """
    loops, lookups = chapter.table("lock costs", "time"), chapter.table("read", "throughput")
    switch, rouse = (
        chapter.table("handoff", metric)["handoff"] * 1e-6 for metric in ("processor", "elapsed")
    )
    visit = (loops[locks.ALONE] - loops[locks.EMPTY]).clip(lower=1) / 2
    line = (loops[locks.SAME] / 4 - visit).clip(lower=1) / model.LOCK_LINES
    busy = one_per_processor(chapter)
    work = busy / lookups[by_clients(busy)]
    columns = [work, visit * 1e-9, line * 1e-9, switch, rouse]
    measured = pd.concat(columns, axis=1, join="inner")
    return [Costs(*row) for row in measured.itertuples(index=False)]


DISTANCES = (8, 64, 256)  # bytes; the last two are the bounds of the talk's sizes of a line
SAME_LINE, MIDDLE, OTHER_LINE = (f"{distance} bytes apart" for distance in DISTANCES)
SPREAD, PACKED = "spread words scanned", "packed words scanned"
ROUNDS = 1500


@experiment(claims=["haas-015", "haas-016"])
def cache_lines(chapter: Chapter) -> None:
    """Nanoseconds for a word that another process may change beside.

    Two processes add to words that lie so many bytes apart, and one scans a word of each of many
    structures while the other changes their neighbours.
    """
    cachelines.require()

    def add(distance: int, block: Block) -> dict[str, float]:
        return {"time": cachelines.beside(distance, ROUNDS)}

    def scan(packed: bool, block: Block) -> dict[str, float]:
        return {"time": cachelines.scanned(packed, ROUNDS)}

    names = zip((SAME_LINE, MIDDLE, OTHER_LINE), DISTANCES, strict=True)
    variants = [Variant(name, partial(add, distance)) for name, distance in names]
    variants += [Variant(name, partial(scan, name == PACKED)) for name in (SPREAD, PACKED)]
    chapter.compare("cache lines", variants, {"time": "ns"}, warmup=0)


@dataclass(frozen=True)
class Point:
    """One simulated run: whose cache lines, of which release, on how many processors."""

    lines: str
    release: str
    processors: int
    clients: int
    block: int
    costs: Costs
    transaction: contention.Transaction


def _lookup(
    lines: str, release: str, processors: int, clients: int, costs: Costs, block: int = 0
) -> Point:
    played = model.lookup(release, costs)
    return Point(lines, release, processors, clients, block, costs, played)


def _throughput(point: Point, transactions: int, seed: int) -> float:
    if point.clients == 1:
        return contention.alone(point.transaction)
    return contention.play(
        model.machine(point.processors, point.costs),
        point.transaction,
        point.clients,
        transactions=transactions,
        seed=seed,
    ).throughput


def _play(chapter: Chapter, points: Iterable[Point]) -> pd.DataFrame:
    """Throughput of simulated points, on all processors.

    Columns: lines, line (seconds for a cache line), release, processors, clients, block,
    throughput. With more clients more transactions are played: it takes each a few until the curve
    is where it stays.
    """
    points, given = list(points), chapter.parameters
    lengths = [
        round(given.simulated_transactions * (1 + point.clients / PROCESSORS)) for point in points
    ]
    seeds = [given.seed + point.block for point in points]
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        throughput = list(pool.map(_throughput, points, lengths, seeds, chunksize=1))
    columns = ["lines", "release", "processors", "clients", "block"]
    rows = [tuple(getattr(point, column) for column in columns) for point in points]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(line=[point.costs.line for point in points], throughput=throughput)


@experiment()
def by_line(chapter: Chapter) -> pd.DataFrame:
    """Lookups on the talk's machine with a dearer and dearer cache line, all else as measured.

    How long a line takes from one processor to another depends on how far they are apart. On the
    talk's machine they sat in four sockets, and how long it took there can't be known here.
    Columns: as of all simulations (`_play`).
    """
    costs = model.typical(calibrated(chapter))
    wanted = [
        (BEFORE, PROCESSORS),
        (AFTER, PROCESSORS),
        (BEFORE, 2 * PROCESSORS),
        (FIRST, 2 * PROCESSORS),
    ]
    points = [
        _lookup(THERE, release, PROCESSORS, clients, replace(costs, line=line))
        for line in LINES
        for release, clients in wanted
    ]
    return _play(chapter, points)


def gains_by_line(swept: pd.DataFrame) -> pd.Series:
    """Throughput of 9.2 over 9.1, a client per processor, by the cost of a cache line."""
    chosen = swept[swept["clients"] == PROCESSORS]
    throughput = chosen.pivot(index="line", columns="release", values="throughput")
    return throughput[AFTER] / throughput[BEFORE]


def talks_line(swept: pd.DataFrame) -> float:
    """The cost of a cache line at which the model comes nearest to the talk's gain.

    That gain, with 32 clients, is the one figure that the model is calibrated on.
    """
    return float((gains_by_line(swept) - TALK["gain"]).abs().idxmin())


@experiment(
    claims=[
        "haas-001",
        "haas-004",
        "haas-005",
        "haas-006",
        "haas-007",
        "haas-010",
        "haas-011",
        "haas-014",
    ]
)
def lookups(chapter: Chapter, swept: pd.DataFrame) -> pd.DataFrame:
    """Lookups on all simulated machines; `swept` is `by_line`'s.

    The costs of `THERE` are the medians, and its blocks differ in what is drawn at random; of
    points that are only drawn there is one. `HERE` has a block for each of as many sets of measured
    costs; its curves come from the first set. Columns: as of all simulations (`_play`).
    """
    each = calibrated(chapter)
    there = replace(model.typical(each), line=talks_line(swept))
    curves = [(release, PROCESSORS, clients) for release in RELEASES for clients in SWEEP]
    judged = [(BEFORE, PROCESSORS, clients) for clients in SWEEP if clients >= PROCESSORS / 2]
    judged += [(FIRST, PROCESSORS, clients) for clients in SWEEP if clients > PROCESSORS]
    for release in (AFTER, NO_MESSAGES):
        judged += [(release, PROCESSORS, clients) for clients in (1, PROCESSORS)]
    judged += [(release, SMALL, SMALL) for release in (BEFORE, AFTER)]
    points = []
    for block in range(SEEDS):
        points += [_lookup(THERE, *point, there, block) for point in judged]
    points += [_lookup(THERE, *point, there) for point in curves if point not in judged]
    points += [_lookup(HERE, *point, each[0]) for point in curves if point[2] != PROCESSORS]
    here = [(AFTER, LARGE, 1)]
    here += [(release, LARGE, LARGE) for release in (AFTER, OLD_LINUX, BEFORE)]
    here += [(release, PROCESSORS, PROCESSORS) for release in RELEASES]
    for block, costs in enumerate(each[:SEEDS]):
        points += [_lookup(HERE, *point, costs, block) for point in here]
    return _play(chapter, points)


@experiment(claims=["haas-024"])
def writers(chapter: Chapter, swept: pd.DataFrame) -> pd.DataFrame:
    """pgbench's transaction on the talk's machine; `swept` is `by_line`'s.

    Columns: as of all simulations (`_play`).
    """
    costs = replace(model.typical(calibrated(chapter)), line=talks_line(swept))
    busy = one_per_processor(chapter)
    work = busy / chapter.table("write", "throughput")[by_clients(busy)].median()
    inserted = 1 / chapter.table("insertion", "records")[by_clients(1)].median()
    loop = chapter.table("lock costs", "time")[locks.EMPTY].median() * 1e-9
    record = max(inserted - loop, 1e-8)
    points = []
    for block in range(SEEDS):
        for release in (BEFORE, AFTER):
            played = model.tpcb(release, PROCESSORS, costs, work, record)
            point = Point(THERE, release, PROCESSORS, PROCESSORS, block, costs, played)
            points.append(point)
    return _play(chapter, points)
