"""Overlap of computing and waiting: the report's test program."""

from collections.abc import Iterator

from pgrerun.lab.instruments import overlap
from pgrerun.lab.server.private import base_directory
from pgrerun.lab.testbed import Block, Row, Testbed, experiment


@experiment(units={"processor_share": "share of one processor", "elapsed": "s"})
def program(bed: Testbed) -> Iterator[Row]:
    """The report's read-compute-write program on one processor: one copy, then two.

    Adjusted on this machine to wait for its I/O about half of the time; runs beside the
    cluster's files, on the disk that the ladder was climbed on.
    """
    folder, cycles = base_directory(), bed.parameters.cycles
    rounds = overlap.calibrate(folder, cycles=cycles)

    def measure(block: Block, copies: int) -> dict[str, float]:
        ran = overlap.run(folder, copies=copies, cycles=cycles, rounds=rounds)
        return {"processor_share": ran.processor, "elapsed": ran.elapsed}

    # a run takes a second, and the calibration has warmed it up
    yield from bed.compare(measure, {"copies": [1, 2]}, pairs=bed.fewer_pairs, warmup=0)
