"""What processors cost each other here, and larger machines, simulated (`lab.models`)."""

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments import locks
from pgrerun.chapters.scalability.experiments.load import by_clients, one_per_processor
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import cachelines, switching
from pgrerun.lab.models import lookups as model
from pgrerun.lab.models.lookups import AFTER, BEFORE, RELEASES, Costs, Point
from pgrerun.record import printed

TALK = printed.table("scalability_read").value

PROCESSORS, SMALL = int(TALK["cores"]), int(TALK["cores_small"])
SWEEP = (1, 8, 16, 20, 24, 32, 64)  # clients
SEEDS = 5
LINES = tuple(nanoseconds * 1e-9 for nanoseconds in (10, 40, 80, 120, 150))


@experiment()
def handoffs(chapter: Chapter, rounds: int = 400) -> None:
    """What one process pays to wake another on the next processor, in microseconds."""

    def measure(block: Block) -> dict[str, float]:
        cost = switching.handoff(rounds=rounds)
        return {"elapsed": cost.elapsed * 1e6, "processor": cost.processor * 1e6}

    chapter.compare("handoff", [Variant("handoff", measure)], {"elapsed": "µs", "processor": "µs"})


def calibrated(chapter: Chapter) -> list[Costs]:
    """The model's costs, one set for each block in which they were measured.

    A visit is half of what taking and releasing a lock costs a session alone. Two sessions that
    want the same lock take turns, so the lock is passed on four times while each takes and releases
    it once; what that takes longer than four visits is the fetching of the lock's cache lines.
    A lookup's work is what every processor does for it, pgbench's part included. A block where one
    of these differences isn't positive has no costs; CannotMeasure if none has.
    """
    loops, lookups = chapter.table("lock costs", "time"), chapter.table("read", "throughput")
    switch, rouse = (
        chapter.table("handoff", metric)["handoff"] * 1e-6 for metric in ("processor", "elapsed")
    )
    visit = (loops[locks.ALONE] - loops[locks.EMPTY]) / 2
    line = (loops[locks.SAME] / 4 - visit) / model.LOCK_LINES
    busy = one_per_processor(chapter)
    work = busy / lookups[by_clients(busy)]
    columns = [work, visit * 1e-9, line * 1e-9, switch, rouse]
    measured = pd.concat(columns, axis=1, join="inner")
    measured = measured[((measured > 0) & (measured < np.inf)).all(axis=1)]
    if measured.empty:
        raise CannotMeasure(
            "undisturbed measurements", "in no block taking a lock took longer than not taking it"
        )
    return [Costs(*row) for row in measured.itertuples(index=False)]


DISTANCES = (8, 64, 256)  # bytes; the last two are the bounds of the talk's sizes of a line
SAME_LINE, MIDDLE, OTHER_LINE = (f"{distance} bytes apart" for distance in DISTANCES)
SPREAD, PACKED = "spread words scanned", "packed words scanned"
UNDISTURBED = "spread words scanned, nobody changes them"
ROUNDS = 1500


@experiment(claims=["haas-016"])
def cache_lines(chapter: Chapter, rounds: int = ROUNDS) -> None:
    """Nanoseconds for a word that another process may change beside.

    Two processes add to words that lie so many bytes apart, and one scans a word of each of many
    structures while the other changes their neighbours, or does nothing.
    """
    cachelines.require()

    def add(distance: int, block: Block) -> dict[str, float]:
        return {"time": cachelines.beside(distance, rounds)}

    def scan(name: str, block: Block) -> dict[str, float]:
        return {"time": cachelines.scanned(name == PACKED, rounds, name == UNDISTURBED)}

    names = zip((SAME_LINE, MIDDLE, OTHER_LINE), DISTANCES, strict=True)
    variants = [Variant(name, partial(add, distance)) for name, distance in names]
    variants += [Variant(name, partial(scan, name)) for name in (SPREAD, PACKED, UNDISTURBED)]
    chapter.compare("cache lines", variants, {"time": "ns"}, warmup=0)


def _play(chapter: Chapter, points: Iterable[Point]) -> pd.DataFrame:
    """Simulated points, played on all processors.

    Columns: line (seconds for a cache line), release, processors, clients, block, throughput,
    spinlock (that for which most clients ask at a time), asking (how many, on average).
    """
    given, played = chapter.parameters, list(points)
    one = partial(Point.play, transactions=given.simulated_transactions, seed=given.seed)
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        outcomes = list(pool.map(one, played))
    rows = []
    for p, outcome in zip(played, outcomes, strict=True):
        spins = [visit.lock for visit in model.lookup(p.release, p.costs).visits if visit.spins]
        most = max(spins, key=outcome.waiting.__getitem__)
        point = p.costs.line, p.release, p.processors, p.clients, p.block
        rows.append((*point, outcome.throughput, most, outcome.waiting[most]))
    columns = ["line", "release", "processors", "clients", "block"]
    return pd.DataFrame(rows, columns=[*columns, "throughput", "spinlock", "asking"])


@experiment(after=["clients.lookups", "locks.costs", "large_machines.handoffs"])
def by_line(chapter: Chapter) -> pd.DataFrame:
    """Lookups on the talk's machine with a dearer and dearer cache line, all else as measured.

    How long a line takes from one processor to another depends on how far they are apart. On the
    talk's machine they sat in four sockets, and how long it took there can't be known here.
    Columns: as of all simulations (`_play`).
    """
    costs = model.typical(calibrated(chapter))
    return _play(
        chapter,
        (
            Point(release, PROCESSORS, PROCESSORS, replace(costs, line=line))
            for line in LINES
            for release in (BEFORE, AFTER)
        ),
    )


def gains_by_line(swept: pd.DataFrame) -> pd.Series:
    """Throughput of 9.2 over 9.1, a client per processor, by the cost of a cache line."""
    throughput = swept.pivot(index="line", columns="release", values="throughput")
    return throughput[AFTER] / throughput[BEFORE]


def talks_line(swept: pd.DataFrame) -> float:
    """The cost of a cache line at which the model comes nearest to the talk's gain.

    That gain, with 32 clients, is the one figure that the model is held against.
    """
    return float((gains_by_line(swept) - TALK["gain"]).abs().idxmin())


@experiment()
def lookups(chapter: Chapter, swept: pd.DataFrame) -> pd.DataFrame:
    """Lookups on the talk's machine and on its small one; `swept` is `by_line`'s.

    Blocks differ in what is drawn at random. Columns: as of all simulations (`_play`).
    """
    costs = replace(model.typical(calibrated(chapter)), line=talks_line(swept))
    where = [(PROCESSORS, clients) for clients in SWEEP] + [(SMALL, SMALL)]
    return _play(
        chapter,
        (
            Point(release, *machine, costs, block)
            for block in range(SEEDS)
            for release in RELEASES
            for machine in where
        ),
    )
