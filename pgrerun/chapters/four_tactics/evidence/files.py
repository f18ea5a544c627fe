"""What requests of a disk and PostgreSQL's reads say about a file system of one's own."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.files import (
    JUMPS,
    ONE,
    ROW,
    TWO,
    Requests,
)
from pgrerun.chapters.four_tactics.experiments.reading import (
    RAW,
    SYNC_LARGE,
    SYNC_ONE,
    UNIX,
    WORKER_LARGE,
)
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.lab.ingres.benchmark import PAGES, TRACKS
from pgrerun.lab.models import read_ahead as disk
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, about, every, fact, greater, less, supporting

SCANS = ("b_3360", "c_3360", "d_3360")
TURN = 1 / 60  # s; a disk of 1981 turned 3600 times a minute, and a track is one turn
CALIBRATED = "e_3360"  # the run whose printed time on UNIX gives the disk's

Requested = Mapping[str, Mapping[str, Requests]]


# ---- the miniature's requests


def cached(access: pd.DataFrame) -> dict[str, bool]:
    """Whether joins read fewer pages than they touch (`miniature.reads`)."""
    joins = access[access["run"].str[0].isin(list("fghi"))]
    return {"every join reads fewer pages than it touches": (joins.read < joins.touched).all()}


# ---- the same on a disk of 1981


def _seconds(requested: Requested, run: str, files: str, seek: float) -> float:
    """Response time of a run: the miniature's requests, the CPU time that is printed."""
    column, ahead = ("ingres", True) if files == PAGES else ("fs", False)
    trace, touched = requested[run][files]
    return disk.response(
        trace,
        touched,
        printed.cell("four_tactics_files_cpu", run, column),
        lambda pages: seek if pages == 1 else seek + TURN,
        ahead=ahead,
    )


def seek_time(requested: Requested) -> float:
    """Seconds of a request for a page with which query e takes on UNIX what it took in print."""
    return disk.calibrated(
        lambda seek: _seconds(requested, CALIBRATED, PAGES, seek),
        printed.cell("four_tactics_files_wall", CALIBRATED, "ingres"),
    )


def simulated(requested: Requested) -> pd.DataFrame:
    """Response times of all long runs on that disk, beside Table 5.

    Indexed by run. Columns: requests on UNIX and by tracks; unix, tracks (s, simulated); unix,
    tracks in print; gain (old over new), simulated and in print.
    """
    seek, wall = seek_time(requested), printed.table("four_tactics_files_wall")
    rows = []
    for run, by in requested.items():
        unix, tracks = (_seconds(requested, run, files, seek) for files in (PAGES, TRACKS))
        then = wall.loc[run, ["ingres", "fs"]].to_list()
        asked = [len(by[files].trace) for files in (PAGES, TRACKS)]
        rows.append((run, *asked, unix, tracks, *then, unix / tracks, then[0] / then[1]))
    columns = ["run", "requests", "requests by tracks", "unix", "tracks", "unix in print"]
    columns += ["tracks in print", "gain", "gain in print"]
    return pd.DataFrame(rows, columns=columns).set_index("run")


def simulated_gains(requested: Requested, *runs: str) -> dict[str, float]:
    """Old over new response time of some runs on that disk, by their letters."""
    gains = simulated(requested)["gain"]
    return {run[0]: gains[run] for run in runs}


def diluted(requested: Requested) -> float:
    """The improvement of query e over that of queries f and h together, diluted by joins' CPU."""
    found = simulated(requested)
    of_joins = found.loc[["f_3360", "h_3360"]].sum()
    return found["gain"]["e_3360"] / (of_joins["unix"] / of_joins["tracks"])


# ---- the kernel's read-ahead


def beyond(found: pd.DataFrame) -> pd.Series:
    """What was fetched beyond what was asked for (kB), by pattern."""
    return found.set_index("pattern").eval("fetched - asked")


def read_ahead(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether the kernel fetches ahead after two reads in a row, until a jump (`read_ahead`).

    Jumps end it if they leave less than half of what it fetches ahead.
    """
    more = beyond(found)
    return {
        "two reads in a row make it fetch ahead": more[TWO] > 0,
        "jumps away and back end that": more[JUMPS] < more[ROW] / 2,
        "a single read makes it fetch ahead": supporting(more[ONE] > 0),
    }


# ---- structures


def structures(found: pd.DataFrame, margin: float = 0.25) -> dict[str, bool | None]:
    """Whether each query reads about as many pages of a hashed relation as of an ISAM one."""
    ratios = (found["hash"] / found["ISAM"]).set_axis(found["query"])
    return {
        f"query {query} reads about as much": about(ratio, 1, margin)
        for query, ratio in ratios.items()
    }


def similar_structures(
    found: pd.DataFrame, indexes: pd.DataFrame, margin: float = 0.25
) -> dict[str, bool | Part | None]:
    """The same, and beside it the pages that PostgreSQL touches by its two kinds of index."""
    ratios = (indexes["hash"] / indexes["btree"]).set_axis(indexes["query"])
    beside = {
        f"query {query} touches about as many pages by either index of PostgreSQL": supporting(
            about(ratio, 1, margin)
        )
        for query, ratio in ratios.items()
    }
    return structures(found, margin) | beside


# ---- PostgreSQL


def gain(chapter: Chapter, what: str, *runs: str) -> Interval:
    """Time of runs together on the kernel's files over raw ones; `what`: "wall" or "cpu"."""
    total = sum(chapter.table("file systems", f"{what} {run}") for run in runs)
    return statistics.ratio(total[UNIX], total[RAW], seed=chapter.parameters.seed)


def scans(chapter: Chapter) -> dict[str, Interval | Part]:
    """CPU time of the three scans of all narrow tuples together; beside it the response time."""
    return {
        "CPU": gain(chapter, "cpu", *SCANS),
        "response": supporting(gain(chapter, "wall", *SCANS)),
    }


def _between(gains: list[Interval], low: float, high: float) -> Part:
    """Whether all improvements (%) lie there; the opposite is that all times grow."""
    inside = [every([greater(x, 1 + low / 100), less(x, 1 + high / 100)]) for x in gains]
    return fact(every(inside), every(less(x) for x in gains))


def conclusion(chapter: Chapter) -> dict[str, Part]:
    """Whether each long run gains what the closing table says."""
    said = printed.table("four_tactics_conclusions").loc["FS"]
    cpu, wall = ([gain(chapter, what, run) for run in LONG] for what in ("cpu", "wall"))
    return {
        f"every command saves {said.low:g} to {said.high:g} % of CPU time": _between(
            cpu, said.low, said.high
        ),
        f"every command gains {said.response_low:g} to {said.response_high:g} % of response"
        " time": _between(wall, said.response_low, said.response_high),
    }


def without_processor(chapter: Chapter) -> Interval:
    """The share of the long runs' time on the kernel's files in which they didn't compute."""
    total = {
        what: sum(chapter.table("file systems", f"{what} {run}")[UNIX] for run in LONG)
        for what in ("wall", "cpu")
    }
    waiting = (1 - total["cpu"] / total["wall"]).clip(lower=0)
    return statistics.median(waiting, seed=chapter.parameters.seed)


def most_by_large_reads(chapter: Chapter) -> Interval:
    """The time halfway from a page a read to large asynchronous reads, over that of large reads.

    Above 1 if large reads alone bring most of the gain.
    """
    scan = chapter.table("asynchronous", "scan")
    halfway = (scan[SYNC_ONE] + scan[WORKER_LARGE]) / 2
    return statistics.ratio(halfway, scan[SYNC_LARGE], seed=chapter.parameters.seed)


def waiting(chapter: Chapter) -> Interval:
    """The share of a scan's time that it waits for reads, a page each."""
    return chapter.median("asynchronous", "waiting", SYNC_ONE)


def switches_per_read(chapter: Chapter) -> Interval:
    """Voluntary switches of the backend over its reads, a page a read and each waited for."""
    switches, reads = (
        chapter.table("asynchronous", name)[SYNC_ONE] for name in ("switches", "reads")
    )
    # a count of none has no ratio: half a one stands for it
    return statistics.ratio(switches.clip(lower=0.5), reads, seed=chapter.parameters.seed)


def contention(chapter: Chapter) -> dict[str, bool | None]:
    """Whether a scan takes longer beside others, with either way of reading."""
    together, alone = (chapter.table("asynchronous", name) for name in ("together", "alone"))
    facts = {}
    for name in (SYNC_LARGE, WORKER_LARGE):
        ratio = statistics.ratio(together[name], alone[name], seed=chapter.parameters.seed)
        facts[f"a scan takes longer beside others ({name.split(',')[0]})"] = greater(ratio)
    return facts
