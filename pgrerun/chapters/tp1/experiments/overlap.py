"""Overlap of computing and waiting: the report's test program."""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import overlap
from pgrerun.lab.server.private import base_directory

COPIES = ("one copy", "two copies")
UNITS = {"processor": "share of one processor", "elapsed": "s"}


@experiment(claims=["lai-048"])
def read_compute_write(chapter: Chapter) -> None:
    """The report's read-compute-write program on one processor: one copy, then two.

    Adjusted on this machine to wait for its I/O about half of the time; runs beside the
    cluster's files, on the disk that the ladder was climbed on.
    """
    folder, cycles = base_directory(), chapter.parameters.cycles
    rounds = overlap.calibrate(folder, cycles=cycles)

    def copies(number: int, block: Block) -> dict[str, float]:
        ran = overlap.run(folder, copies=number, cycles=cycles, rounds=rounds)
        return {"processor": ran.processor, "elapsed": ran.elapsed}

    variants = [Variant(name, partial(copies, number)) for number, name in enumerate(COPIES, 1)]
    # a run takes a second, and the calibration has warmed it up
    chapter.compare("overlap", variants, UNITS, chapter.fewer_pairs, warmup=0)
