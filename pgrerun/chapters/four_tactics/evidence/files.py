"""What cold files and PostgreSQL's reads say about a file system of one's own."""

from collections.abc import Iterable

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.files import (
    INTERPRETED,
    JUMPS,
    LONG,
    LONG_JOINS,
    ONE,
    ROW,
    TIMED,
    TWO,
)
from pgrerun.chapters.four_tactics.experiments.reading import (
    SYNC_LARGE,
    SYNC_ONE,
    WORKER_LARGE,
)
from pgrerun.lab.ingres.benchmark import PAGES, TRACKS
from pgrerun.record import statistics
from pgrerun.record.statistics import Interval

SCANS = ("b_3360", "c_3360", "d_3360")


def improvements(
    chapter: Chapter, what: str = "wall", runs: Iterable[str] = TIMED
) -> dict[str, Interval]:
    """Time on UNIX files over that a track at a time, by run; `what`: "wall" or "cpu"."""
    return {run: chapter.ratio("cold files", f"{what} {run}", PAGES, TRACKS) for run in runs}


def _sum(chapter: Chapter, what: str, runs: Iterable[str]) -> pd.DataFrame:
    """Time of several runs together: a row per block, a column per variant."""
    return sum(chapter.table("cold files", f"{what} {run}") for run in runs)


def scans(chapter: Chapter) -> Interval:
    """CPU of the three scans of all narrow tuples together, UNIX over tracks."""
    total = _sum(chapter, "cpu", SCANS)
    return statistics.ratio(total[PAGES], total[TRACKS], seed=chapter.parameters.seed)


def cpu_over_wall(chapter: Chapter) -> Interval:
    """What compiling gains in CPU over what it gains in response, on cold files.

    Commands on many tuples together, but for the long joins.
    """
    runs = [run for run in LONG if run not in LONG_JOINS]
    gains = []
    for what in ("cpu", "wall"):
        total = _sum(chapter, what, runs)
        gains.append(total[INTERPRETED] / total[PAGES])
    return statistics.ratio(*gains, seed=chapter.parameters.seed)


def diluted(chapter: Chapter) -> Interval:
    """The improvement of query e over that of queries f and h together, diluted by joins' CPU."""
    gains = []
    for runs in (["e_3360"], LONG_JOINS):
        total = _sum(chapter, "wall", runs)
        gains.append(total[PAGES] / total[TRACKS])
    return statistics.ratio(*gains, seed=chapter.parameters.seed)


def processor_share(chapter: Chapter) -> pd.Series:
    """How much of a cold run's time on UNIX files is CPU (%), by run: the rest is waiting."""
    shares = {}
    for run in LONG:
        cpu, wall = (
            chapter.table("cold files", f"{what} {run}")[PAGES] for what in ("cpu", "wall")
        )
        shares[run] = 100 * (cpu / wall).median()
    return pd.Series(shares)


def beyond(found: pd.DataFrame) -> pd.Series:
    """What was fetched beyond what was asked for (kB), by pattern."""
    return found.set_index("pattern").eval("fetched - asked")


def read_ahead(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the kernel fetches ahead after two reads in a row, until a jump (`read_ahead`).

    Jumps end it if they leave less than half of what it fetches ahead.
    """
    more = beyond(found)
    return {
        "a single read doesn't make it fetch ahead": more[ONE] <= 0,
        "two reads in a row do": more[TWO] > 0,
        "jumps away and back end it": more[JUMPS] < more[ROW] / 2,
    }


def structures(found: pd.DataFrame, margin: float = 0.25) -> dict[str, bool]:
    """Whether each query reads about as many pages of a hashed relation as of an ISAM one."""
    ratios = (found["hash"] / found["ISAM"]).set_axis(found["query"])
    about = ratios.between(1 / (1 + margin), 1 + margin)
    return {f"query {query} reads about as much": value for query, value in about.items()}


# ---- PostgreSQL


def asked_ahead(chapter: Chapter) -> Interval:
    """Time to fetch scattered pages when none is asked for before it is needed, over with it."""
    unprompted = chapter.table("asynchronous", "unprompted")[WORKER_LARGE]
    ahead = chapter.table("asynchronous", "scattered")[WORKER_LARGE]
    return statistics.ratio(unprompted, ahead, seed=chapter.parameters.seed)


def most_by_large_reads(chapter: Chapter) -> Interval:
    """The time halfway from a page a read to large asynchronous reads, over that of large reads.

    Above 1 if large reads alone bring most of the gain.
    """
    scan = chapter.table("asynchronous", "scan")
    halfway = (scan[SYNC_ONE] + scan[WORKER_LARGE]) / 2
    return statistics.ratio(halfway, scan[SYNC_LARGE], seed=chapter.parameters.seed)


def switches_per_read(chapter: Chapter) -> Interval:
    """Voluntary switches of the backend over its reads, a page a read and each waited for."""
    switches, reads = (
        chapter.table("asynchronous", name)[SYNC_ONE] for name in ("switches", "reads")
    )
    # a count of none has no ratio: half a one stands for it
    return statistics.ratio(switches.clip(lower=0.5), reads, seed=chapter.parameters.seed)


def switches(chapter: Chapter) -> dict[str, bool]:
    """Whether reads approximate the switches: within a factor of two."""
    ratio = switches_per_read(chapter)
    return {
        "a read is no more than two switches": ratio.high <= 2,
        "a switch is no more than two reads": ratio.low >= 0.5,
    }


def contention(chapter: Chapter) -> dict[str, bool]:
    """Whether a scan takes longer beside others, with either way of reading."""
    together, alone = (chapter.table("asynchronous", name) for name in ("together", "alone"))
    facts = {}
    for name in (SYNC_LARGE, WORKER_LARGE):
        ratio = statistics.ratio(together[name], alone[name], seed=chapter.parameters.seed)
        facts[f"a scan takes longer beside others ({name.split(',')[0]})"] = ratio.low > 1
    return facts


def similar_structures(
    chapter: Chapter, found: pd.DataFrame, margin: float = 0.25
) -> dict[str, bool]:
    """Whether hash and ISAM give similar results: the miniature's pages, PostgreSQL's times."""
    ratio = chapter.ratio("keyed", "seconds", "btree", "hash")
    return structures(found, margin) | {
        "PostgreSQL takes about as long by B-tree as by hash index": statistics.within(
            ratio, margin
        )
    }
