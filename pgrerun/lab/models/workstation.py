"""A simulated workstation of 1990: one processor, one disk, a few backends.

The DECstation 3100 of the report is not to be had, and the reader's disk is some
hundred times faster than its 35 to 40 accesses per second. This model takes the
report's own demands per transaction (seconds of processor, page reads and writes) and
plays them on one processor and one disk. What comes out is simulated.

Two constants are not printed and are calibrated, each on a figure of the report that
the ladder of throughputs does not contain: the disk's rate on the single backend's
processor use, the variability of service on the report's read-compute-write program.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from scipy.optimize import brentq


@dataclass(frozen=True)
class Demand:
    """What one transaction asks for: processor seconds, page reads and page writes.

    `force` says that the writes come in one burst at commit (1990 report, section
    3.2.2: all changes are written before a transaction commits), not spread out.
    """

    processor: float
    reads: float
    writes: float
    force: bool


@dataclass(frozen=True)
class Simulated:
    """Throughput in transactions per second; busy shares from 0 to 1."""

    throughput: float
    processor: float
    disk: float


def simulate(
    demand: Demand,
    *,
    backends: int,
    disk_rate: float,
    variability: float,
    transactions: int = 3000,
    seed: int = 0,
) -> Simulated:
    """Play `transactions` transactions of `demand` on one processor and one disk.

    `disk_rate` is in requests per second. `variability` is the coefficient of variation
    of every slice of processor time and every disk request (0: constant, 1: as
    variable as exponential; gamma-distributed). A transaction alternates between
    slices of processor time and single requests; both stations serve first come,
    first served.
    """
    rng = np.random.default_rng(seed)
    env = simpy.Environment()
    processor, disk = simpy.Resource(env), simpy.Resource(env)
    busy = {processor: 0.0, disk: 0.0}
    left = iter(range(transactions))

    def seconds(mean: float) -> float:
        if variability == 0 or mean == 0:
            return mean
        shape = variability**-2
        return float(rng.gamma(shape, mean / shape))

    def served(station: simpy.Resource, mean: float) -> Generator[simpy.Event, Any, None]:
        with station.request() as turn:
            yield turn
            held = seconds(mean)
            yield env.timeout(held)
        busy[station] += held

    def backend() -> Generator[simpy.Event, Any, None]:
        for _ in left:
            # A fractional number of requests is met on average, not by rounding down.
            reads, writes = int(demand.reads + rng.random()), int(demand.writes + rng.random())
            spread, burst = (reads, writes) if demand.force else (reads + writes, 0)
            think = demand.processor / (spread + 1)
            for _ in range(spread):
                yield from served(processor, think)
                yield from served(disk, 1 / disk_rate)
            yield from served(processor, think)
            for _ in range(burst):
                yield from served(disk, 1 / disk_rate)

    for _ in range(backends):
        env.process(backend())
    env.run()
    return Simulated(transactions / env.now, busy[processor] / env.now, busy[disk] / env.now)


def calibrate_variability(
    alone: float, two_copies: float, *, transactions: int = 6000, seed: int = 0
) -> float:
    """The variability at which two copies of the report's program use the printed CPU share.

    The program alternates among read, computation and write. `alone` and `two_copies`
    are the processor's busy shares (0 to 1) with one copy and with two; `transactions` is how
    many of its cycles are played for each variability that is tried. Raises
    ValueError when no variability between 0 and 2 gives `two_copies`.
    Source: 1990 report, section 3.2.2.
    """
    # Only proportions matter: one cycle lasts a second, its two requests the idle part.
    program = Demand(processor=alone, reads=1, writes=1, force=True)
    rate = 2 / (1 - alone)

    def excess(variability: float) -> float:
        played = simulate(
            program,
            backends=2,
            disk_rate=rate,
            variability=variability,
            transactions=transactions,
            seed=seed,
        )
        return played.processor - two_copies

    return float(brentq(excess, 0.05, 2, xtol=0.02))
