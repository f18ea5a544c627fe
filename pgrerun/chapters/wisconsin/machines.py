"""Another machine: whether one factor converts times, and what this one owes to its processor alone."""

import numpy as np
import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import race
from pgrerun.chapters.wisconsin.contenders import POSTGRESQL, PostgreSQL
from pgrerun.chapters.wisconsin.queries import BY_KEY, RUNNABLE_IN_1990, SPECIFIED
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import clock, machine

MACHINES = "two machines"
UNCACHED = "a machine without memory"
CONVERTED = ("q1", "q3", "q6", "q7", "q18", "q27", "q30")
READING, COMPUTING = "q1", "q18"  # both read every page of the same relation; the second computes more

# What the report's Sun could do; the report doesn't print it. A Sun-3/280 has a 68020 at 25 MHz, which
# Sun rated at four million instructions per second.
SUN = 4e6


def machines(chapter: Chapter) -> None:
    """Queries on this machine, and on one that differs in nothing but memory: a pool of one megabyte, no cache of the system's."""
    poor = chapter.cluster(debug_io_direct="data", shared_buffers="1MB") if _direct(chapter) else None
    if poor is None:
        raise CannotMeasure("direct I/O", "the file system of the server's data can't be read past its cache, so memory can't be taken away")
    contenders = [PostgreSQL(chapter.server), PostgreSQL(poor, UNCACHED)]
    race.race(chapter, MACHINES, SPECIFIED, contenders, [BY_KEY[key] for key in CONVERTED])


def _direct(chapter: Chapter) -> bool:
    return machine.direct_io(chapter.cluster().scratch)


def factors(chapter: Chapter) -> dict[str, statistics.Interval]:
    """By query, the time on the machine without memory over that on this one."""
    found = {key: chapter.ratio(MACHINES, key, UNCACHED, POSTGRESQL) for key in CONVERTED}
    return {key: value for key, value in found.items() if value is not None}


def apart(chapter: Chapter) -> statistics.Interval | None:
    """The factor of a query that mostly reads over the factor of one that computes more."""
    frames = {key: chapter.table(MACHINES, key) for key in (READING, COMPUTING)}
    if any(frame.empty for frame in frames.values()):
        return None
    reading, computing = (frame[UNCACHED] / frame[POSTGRESQL] for frame in frames.values())
    return statistics.ratio(reading, computing, seed=chapter.parameters.seed)


# ---- what is left of the speed-up when the processor is taken out


def additions_per_second() -> float:
    """Additions of 4-byte integers in the processor's cache by one thread: an upper bound of what it can be credited with."""
    one, other = np.ones(4096, np.int32), np.ones(4096, np.int32)
    out, best = np.empty_like(one), np.inf
    for _ in range(50):
        with clock.stopwatch() as watch:
            for _ in range(100):
                np.add(one, other, out=out)
        best = min(best, watch.seconds)
    return 100 * one.size / best


def here(chapter: Chapter) -> bool:
    """Whether the server under test is known to run on this machine, as DuckDB and the miniature do."""
    return not chapter.borrowed or chapter.server.can("processes")


def processor_factor(chapter: Chapter) -> float:
    """How many times as fast as the Sun's this machine's processor is, at the most; CannotMeasure unless it is the server's, too."""
    if not here(chapter):
        raise CannotMeasure("the server's processor", f"{chapter.server.name} may run on another machine, whose processor can't be tried from here")
    return additions_per_second() / SUN


def speedups(chapter: Chapter) -> pd.DataFrame:
    """POSTGRES's printed seconds over PostgreSQL's here: a row per block, a column per query that it could run; empty if nothing ran."""
    frame = race.seconds(chapter, SPECIFIED, POSTGRESQL)
    if frame.empty:
        return frame
    printed = published.table("wisconsin_figure_3_11").postgres
    return pd.DataFrame({key: printed[key] / frame[key] for key in RUNNABLE_IN_1990})


def speedup(chapter: Chapter) -> statistics.Interval | None:
    """Geometric mean of the speed-ups."""
    frame = speedups(chapter)
    return None if frame.empty else statistics.median(race.mean(frame, frame.columns), seed=chapter.parameters.seed)


def beyond_the_processor(chapter: Chapter, factor: float | None) -> statistics.Interval | None:
    """The speed-up over what the processor alone explains."""
    found = speedup(chapter)
    return None if None in (found, factor) else found.times(1 / factor)
