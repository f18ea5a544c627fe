"""The slowed disk itself: is it as slow as it was set to be, and does it make programs queue?"""

from collections.abc import Iterator

from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.instruments import overlap
from pgrerun.lab.models import closed_network
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

SET = (0.5, 2.0, 10.0)  # milliseconds of a request
MEAN, AWAY = 0.002, 0.004  # seconds of a request, and of sleep between a read and a write
PROGRAMS = (1, 2, 4)
LONGEST = 1.0  # seconds of a block, whose times are set


@experiment(units={"over_set": "times"})
def service(bed: Testbed) -> Iterator[Row]:
    """Seconds that a read or a write takes one program, over those that were set.

    The median of the requests of a block: one that meets somebody else on the processor tells
    nothing of the disk.
    """
    with Slowed() as disk, PrivateDirectory(base_directory()) as home:

        def measure(block: Block, set_ms: float) -> dict[str, float]:
            seconds = set_ms / 1000
            with disk.serving(Disk(seconds, seconds)):
                ran = overlap.run(home.path, copies=1, cycles=_cycles(bed, 2 * seconds), disk=disk)
            return {"over_set": ran.request / seconds}

        # a median of requests whose times are set: as many blocks as an interval needs
        yield from bed.compare(measure, {"set_ms": SET}, pairs=ENOUGH_PAIRS, warmup=0)


@experiment(units=dict.fromkeys(("measured", "predicted"), "cycles/s"))
def queue(bed: Testbed) -> Iterator[Row]:
    """Cycles per second of programs that read, sleep and write, and what theory has for them.

    The theory (mean value analysis) is told the mean of the times that the disk drew, and how long
    a program was away from it.
    """
    with Slowed() as disk, PrivateDirectory(base_directory()) as home:

        def measure(block: Block, programs: int) -> dict[str, float]:
            cycles = 2 * _cycles(bed, 2 * MEAN + AWAY)
            slowed = Disk(MEAN, MEAN, drawn=True, seed=block.seed)
            with disk.serving(slowed) as stretch:
                ran = overlap.run(home.path, copies=programs, cycles=cycles, think=AWAY, disk=disk)
            served = stretch.counts().all
            demands = {"disk": 2 * served.busy / served.requests, "away": ran.between}
            predicted = closed_network.solve(demands, programs, delays={"away"})
            measured = programs * cycles / ran.elapsed
            return {"measured": measured, "predicted": predicted.throughput}

        yield from bed.compare(measure, {"programs": PROGRAMS}, pairs=ENOUGH_PAIRS, warmup=0)


def _cycles(bed: Testbed, seconds: float) -> int:
    """Cycles of so many seconds that make two observations of the chapter's length."""
    return max(5, round(min(2 * bed.parameters.milliseconds / 1e3, LONGEST) / seconds))
