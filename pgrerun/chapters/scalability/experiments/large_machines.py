"""What processors cost each other here, and larger machines, simulated (`lab.models`)."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd

from pgrerun.chapters.scalability.experiments.locks import ALONE, EMPTY, SAME
from pgrerun.chapters.scalability.load import one_per_processor
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import cachelines, switch_costs
from pgrerun.lab.models import lookups as model
from pgrerun.lab.models.lookups import AFTER, BEFORE, RELEASES, Costs, Point
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened
from pgrerun.record import printed

# ---- what was measured here

ROUNDS = 1500
DISTANCES = (8, 64, 256)  # bytes; the last two are the bounds of the talk's sizes of a line


@experiment(units={"elapsed": "µs", "processor": "µs"})
def handoffs(bed: Testbed, rounds: int = 400) -> Iterator[Row]:
    """What one process pays to wake another on the next processor."""

    def measure(block: Block, handed: str) -> dict[str, float]:
        return switch_costs.handoff_latency(rounds)

    yield from bed.compare(measure, [{"handed": "through a pipe"}], pairs=bed.parameters.pairs)


@experiment(units={"time": "ns"})
def false_sharing(bed: Testbed, rounds: int = ROUNDS) -> Iterator[Row]:
    """Nanoseconds to add to a word, while another process adds to one so many bytes away."""
    cachelines.require()
    lasting = {
        apart: _rounds(bed, rounds, partial(cachelines.false_sharing_cost, apart))
        for apart in DISTANCES
    }

    yield from bed.compare(
        lambda block, bytes_apart: {
            "time": cachelines.false_sharing_cost(bytes_apart, lasting[bytes_apart])
        },
        {"bytes_apart": DISTANCES},
        pairs=bed.timed_pairs(bed.parameters.pairs),
        warmup=0,
    )


@experiment(units={"time": "ns"})
def snapshot_scan(bed: Testbed, rounds: int = ROUNDS) -> Iterator[Row]:
    """Nanoseconds to read one word of each of many structures, as a snapshot does.

    The words lie in the structures or packed side by side, and another process changes their
    neighbours in the structures, or does nothing.
    """
    cachelines.require()
    lasting = _rounds(bed, rounds, partial(cachelines.scan_cost, True))

    def measure(block: Block, words: str, neighbours: str) -> dict[str, float]:
        packed, idle = words == "packed", neighbours == "left alone"
        return {"time": cachelines.scan_cost(packed, lasting, idle)}

    seen = (("spread", "changed"), ("packed", "changed"), ("spread", "left alone"))
    yield from bed.compare(
        measure,
        [{"words": words, "neighbours": neighbours} for words, neighbours in seen],
        pairs=bed.timed_pairs(bed.parameters.pairs),
        warmup=0,
    )


@experiment(units={"rounds": "rounds/s"})
def nothing_shared(bed: Testbed, rounds: int = ROUNDS) -> Iterator[Row]:
    """Rounds a second of a loop whose processes share nothing, on one processor and on all.

    What is lost so is the machine's, or of whoever lends its processors. It is told.
    """
    cachelines.require()
    usable = sorted(os.sched_getaffinity(0))
    alone = cachelines.unshared_rate(usable[:1], rounds)
    long = max(rounds, round(shortened(bed.parameters.seconds) * alone))

    yield from bed.compare(
        lambda block, processors: {"rounds": cachelines.unshared_rate(usable[:processors], long)},
        {"processors": [1, len(usable)]},
        pairs=bed.timed_pairs(),
        warmup=0,
        positive=["rounds"],
    )


def _rounds(bed: Testbed, least: int, cost: Callable[[int], float]) -> int:
    """So many rounds that one measurement takes the parameter `seconds`, `least` at least."""
    nanoseconds = cost(least) * max(cachelines.WORDS, cachelines.MEMBERS)  # of a round
    return max(least, round(bed.parameters.seconds * 1e9 / nanoseconds))


# ---- simulated

TALK = printed.table("scalability_read").value
PROCESSORS, SMALL, LARGE = (int(TALK[one]) for one in ("cores", "cores_small", "cores_large"))
SWEEP = (1, 8, 16, 20, 24, 32, 64)  # clients
DRAWS = 5
LINES = (10, 40, 80, 120, 150)  # nanoseconds


@experiment(
    units={f"{name}_us": "µs" for name in ("work", "visit", "line", "switch", "rouse")},
)
def simulation_costs(bed: Testbed) -> Iterator[Row]:
    """What the simulation is made of: costs of this machine, a row for each block that has them.

    A visit is half of what taking and releasing a lock costs a session alone. Two sessions that
    want the same lock take turns, so the lock is passed on four times while each takes and releases
    it once; what that takes longer than four visits is the fetching of the lock's cache lines.
    A lookup's work is what every processor does for it, pgbench's part included. A block where one
    of these differences isn't positive has no costs; CannotMeasure if none has.
    """
    for costs in calibrated(bed):
        yield {f"{name}_us": value * 1e6 for name, value in vars(costs).items()}


def calibrated(bed: Testbed) -> list[Costs]:
    """The model's costs, one set for each block in which they were measured."""
    loops = _by_block(bed, "lock_costs", "time", "together")
    busy = one_per_processor(bed)
    swept = _by_block(bed, "lookups", "tps", "clients", again=False)
    switch, rouse = (
        _by_block(bed, "handoffs", metric, "handed").iloc[:, 0] * 1e-6
        for metric in ("processor", "elapsed")
    )
    visit = (loops[ALONE] - loops[EMPTY]) / 2
    line = (loops[SAME] / 4 - visit) / model.LOCK_LINES
    measured = pd.concat(
        [busy / swept[busy], visit * 1e-9, line * 1e-9, switch, rouse], axis=1, join="inner"
    )
    measured = measured[((measured > 0) & (measured < np.inf)).all(axis=1)]
    if measured.empty:
        raise CannotMeasure(
            "undisturbed measurements", "in no block taking a lock took longer than not taking it"
        )
    return [Costs(*row) for row in measured.itertuples(index=False)]


def _by_block(bed: Testbed, name: str, metric: str, factor: str, **only: object) -> pd.DataFrame:
    """A metric of an experiment's rows that count: a row a block, a column for each variant."""
    rows = [
        row
        for row in bed.rows_of(name)
        if not row["disturbed"] and all(row[key] == value for key, value in only.items())
    ]
    if not rows:
        raise CannotMeasure("a run of the whole chapter", f"it plays what {name} has measured")
    return pd.DataFrame(rows).pivot(index="block", columns=factor, values=metric).astype(float)


@experiment(units={"tps": "transactions/s", "asking": "clients", "spinlock": "text"})
def simulated_lookups(bed: Testbed) -> Iterator[Row]:
    """Lookups on the talk's machine and on its small one.

    First with a dearer and dearer cache line, all else as measured: in the talk's machine
    processors sat in four sockets, and how long a line took between them can't be known here. Then
    over clients, with the line that comes nearest to the talk's gain with as many clients as
    processors, which is the one figure that the model is held against. `asking` is how many clients
    on average ask for the spinlock for which most do.
    """
    costs = model.typical(calibrated(bed))
    lines = {
        (line, release): Point(release, PROCESSORS, PROCESSORS, replace(costs, line=line * 1e-9))
        for line in LINES
        for release in (BEFORE, AFTER)
    }
    tps = {}
    for (line, release), row in zip(lines, _play(bed, list(lines.values()))):
        yield {"varied": "line", "line_ns": line} | row
        tps[line, release] = row["tps"]
    nearest = min(LINES, key=lambda n: abs(tps[n, AFTER] / tps[n, BEFORE] - TALK["gain"]))
    where = [(PROCESSORS, clients) for clients in SWEEP] + [(SMALL, SMALL)]
    points = [
        Point(release, *machine, replace(costs, line=nearest * 1e-9), draw)
        for draw in range(DRAWS)
        for release in RELEASES
        for machine in where
    ]
    for row in _play(bed, points):
        yield {"varied": "clients", "line_ns": nearest} | row


def _play(bed: Testbed, points: Sequence[Point]) -> Iterator[Row]:
    """Simulated points, played on all processors."""
    given = bed.parameters
    one = partial(Point.play, transactions=given.simulated_transactions, seed=given.seed)
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        outcomes = list(pool.map(one, points))
    for point, outcome in zip(points, outcomes, strict=True):
        visits = model.lookup(point.release, point.costs).visits
        spins = [visit.lock for visit in visits if visit.spins]
        most = max(spins, key=outcome.waiting.__getitem__)
        yield {
            "release": point.release,
            "processors": point.processors,
            "clients": point.clients,
            "draw": point.block,
            "tps": float(outcome.throughput),
            "asking": float(outcome.waiting[most]),
            "spinlock": most,
        }
