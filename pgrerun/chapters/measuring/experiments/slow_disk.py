"""The slowed disk itself: is it as slow as it was set to be, and does it make programs queue?"""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import overlap
from pgrerun.lab.models import closed_network
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.record import statistics

SERVICE, QUEUE = "a slowed request", "queue of a slowed disk"
SET = (0.0005, 0.002, 0.010)  # seconds of a request
MEAN, AWAY = 0.002, 0.004  # seconds of a request, and of sleep between a read and a write
PROGRAMS = (1, 2, 4)


def as_set(seconds: float) -> str:
    return f"set to {seconds * 1e3:g} ms"


def programs(number: int) -> str:
    return f"{number} program{'s' if number > 1 else ''}"


@experiment()
def service(chapter: Chapter) -> None:
    """Seconds that a read or a write takes one program, over those that were set.

    The median of the requests of a block: one that meets somebody else on the processor tells
    nothing of the disk.
    """
    with Slowed() as disk, PrivateDirectory(base_directory()) as home:

        def requests(seconds: float, block: Block) -> dict[str, float]:
            cycles = _cycles(chapter, 2 * seconds)
            with disk.serving(Disk(seconds, seconds)):
                ran = overlap.run(home.path, copies=1, cycles=cycles, disk=disk)
            return {"over set": ran.request / seconds}

        variants = [Variant(as_set(seconds), partial(requests, seconds)) for seconds in SET]
        # a median of requests whose times are set: as many blocks as an interval needs
        chapter.compare(SERVICE, variants, {"over set": ""}, statistics.ENOUGH, warmup=0)


@experiment()
def queue(chapter: Chapter) -> None:
    """Cycles per second of programs that read, sleep and write, and what theory has for them.

    The theory (mean value analysis) is told the mean of the times that the disk drew, and how long
    a program was away from it.
    """
    with Slowed() as disk, PrivateDirectory(base_directory()) as home:

        def cycle(number: int, block: Block) -> dict[str, float]:
            cycles = 2 * _cycles(chapter, 2 * MEAN + AWAY)
            slowed = Disk(MEAN, MEAN, drawn=True, seed=block.seed)
            with disk.serving(slowed) as stretch:
                ran = overlap.run(home.path, copies=number, cycles=cycles, think=AWAY, disk=disk)
            served = stretch.counts().all
            demands = {"disk": 2 * served.busy / served.requests, "away": ran.between}
            predicted = closed_network.solve(demands, number, delays={"away"})
            return {"measured": number * cycles / ran.elapsed, "predicted": predicted.throughput}

        units = dict.fromkeys(("measured", "predicted"), "cycles/s")
        variants = [Variant(programs(number), partial(cycle, number)) for number in PROGRAMS]
        chapter.compare(QUEUE, variants, units, statistics.ENOUGH, warmup=0)


def _cycles(chapter: Chapter, seconds: float) -> int:
    """Cycles of so many seconds that make two observations of the chapter's length."""
    return max(5, round(2 * chapter.parameters.milliseconds / 1e3 / seconds))
