"""What requests of a disk and PostgreSQL's reads say about a file system of one's own."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.files import (
    AHEAD,
    JUMPS,
    LARGE,
    LARGE_DIRECT,
    ONE,
    ROW,
    TRACK,
    TRACK_DIRECT,
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
from pgrerun.lab.ingres.benchmark import PAGES, TRACKS
from pgrerun.lab.models import read_ahead as disk
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, about, greater, supporting

SCANS = ("b_3360", "c_3360", "d_3360")
JOINS = ("f_3360", "g_3360", "h_3360", "i_3360")
TURN = 1 / 60  # s; a disk of 1981 turned 3600 times a minute, and a track is one turn
CALIBRATED = "e_3360"  # the run whose printed time on UNIX gives the disk's

Requested = Mapping[str, Mapping[str, Requests]]


# ---- the miniature's requests


def cached(access: pd.DataFrame) -> dict[str, bool]:
    """Whether joins read fewer pages than they touch (`miniature.reads`)."""
    joins = access[access["run"].str[0].isin(list("fghi"))]
    return {"every join reads fewer pages than it touches": (joins.read < joins.touched).all()}


# ---- the same on a disk of 1981


def _seconds(requested: Requested, run: str, files: str, seek: float, processor: str = "") -> float:
    """Response time of a run: the miniature's requests, the CPU time that is printed.

    processor: the column of Table 6 that has it, if it isn't that of `files`.
    """
    column, ahead = ("ingres", True) if files == PAGES else ("fs", False)
    trace, touched = requested[run][files]
    return disk.response(
        trace,
        touched,
        printed.cell("four_tactics_files_cpu", run, processor or column),
        lambda pages: seek if pages == 1 else seek + TURN,
        ahead=ahead,
    )


def _gain(requested: Requested, run: str, seek: float) -> float:
    """Response time of a run on UNIX over that by tracks."""
    unix, tracks = (_seconds(requested, run, files, seek) for files in (PAGES, TRACKS))
    return unix / tracks


def seek_time(requested: Requested, *runs: str) -> float:
    """Seconds of a request for a page with which runs take together on UNIX what they took in
    print; without any, query e.
    """
    runs = runs or (CALIBRATED,)
    return disk.calibrated(
        lambda seek: sum(_seconds(requested, run, PAGES, seek) for run in runs),
        sum(printed.cell("four_tactics_files_wall", run, "ingres") for run in runs),
    )


def simulated(requested: Requested) -> pd.DataFrame:
    """Response times of all long runs on that disk, beside Table 5.

    Indexed by run. Columns: requests on UNIX and by tracks; unix, tracks (s, simulated); unix,
    tracks as printed; gain (old over new), simulated and printed.
    """
    seek, wall = seek_time(requested), printed.table("four_tactics_files_wall")
    rows = []
    for run, by in requested.items():
        unix, tracks = (_seconds(requested, run, files, seek) for files in (PAGES, TRACKS))
        then = wall.loc[run, ["ingres", "fs"]].to_list()
        asked = [len(by[files].trace) for files in (PAGES, TRACKS)]
        rows.append((run, *asked, unix, tracks, *then, unix / tracks, then[0] / then[1]))
    columns = ["run", "requests", "requests by tracks", "unix", "tracks", "printed unix"]
    columns += ["printed tracks", "gain", "printed gain"]
    return pd.DataFrame(rows, columns=columns).set_index("run")


def simulated_gains(requested: Requested, *runs: str) -> dict[str, float]:
    """Old over new response time of some runs on that disk, by their letters."""
    gains = simulated(requested)["gain"]
    return {run[0]: gains[run] for run in runs}


def foretold(requested: Requested) -> dict[str, float]:
    """The gain of query e on that disk when other commands have set it, by which have."""
    found = {}
    for name, runs in {"set by the scans": SCANS, "set by the joins": JOINS}.items():
        found[name] = _gain(requested, CALIBRATED, seek_time(requested, *runs))
    return found


def by_contiguous_tracks(requested: Requested) -> float:
    """The share of query e's gain that is left to INGRES on UNIX, if that reads by tracks.

    The requests are those by tracks, the CPU time that on UNIX.
    """
    seek = seek_time(requested)
    unix, tracks = simulated(requested).loc[CALIBRATED, ["unix", "tracks"]]
    both = _seconds(requested, CALIBRATED, TRACKS, seek, "ingres")
    return (unix - both) / (unix - tracks)


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


def similar_structures(
    requested: Requested, hashed: Requested, margin: float = 0.25
) -> dict[str, bool | None]:
    """Whether each query gains by tracks about as much on a hashed relation as on an ISAM one.

    Both on the disk that ISAM's requests have set, with the CPU time of ISAM, as no other is
    printed.
    """
    seek = seek_time(requested)
    return {
        f"query {run[0]} gains about as much": about(
            _gain(hashed, run, seek) / _gain(requested, run, seek), 1, margin
        )
        for run in hashed
    }


# ---- PostgreSQL


def gain(chapter: Chapter, what: str, *runs: str) -> Interval:
    """Time of runs together on the kernel's files over raw ones; `what`: "wall" or "cpu"."""
    total = sum(chapter.table("file systems", f"{what} {run}") for run in runs)
    return statistics.ratio(total[UNIX], total[RAW], seed=chapter.parameters.seed)


def gains(chapter: Chapter, *runs: str) -> dict[str, Interval]:
    """CPU and response time of runs together."""
    return {
        name: gain(chapter, what, *runs)
        for name, what in {"CPU": "cpu", "response": "wall"}.items()
    }


def without_copy(chapter: Chapter) -> dict[str, Part]:
    """CPU time of reads through the kernel's cache over that of reads into user space.

    Of sixteen blocks of a kB, which section 4.1 calls a track, each waited for in both ways. Larger
    reads, and a kernel that reads ahead while the process computes, are told.
    """
    pairs = {
        "a track, waited for in both ways": (TRACK, TRACK_DIRECT),
        "reads of 128 kB": (LARGE, LARGE_DIRECT),
        "a track that the kernel has read ahead": (AHEAD, TRACK_DIRECT),
    }
    found = {name: chapter.ratio("raw files", "cpu", *pair) for name, pair in pairs.items()}
    return {name: Part(one, essential=pairs[name][0] == TRACK) for name, one in found.items()}


def waiting(chapter: Chapter, what: str) -> Interval:
    """The share of the time of a "scan", or of "scattered" pages, that waits for reads.

    They are large and synchronous.
    """
    return chapter.median("asynchronous", f"waiting, {what}", SYNC_LARGE)


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


def concluded() -> dict[str, bool | Part]:
    """Whether by Tables 5 and 6 each long command gains what section VI says, or all of them do.

    The ends of its ranges are printed with one digit, and gains are compared as if they were.
    """
    said, found = printed.table("four_tactics_conclusions").loc["FS"], {}
    for what, words, ends in (
        ("cpu", "CPU", ("low", "high")),
        ("wall", "response", ("response_low", "response_high")),
    ):
        times = printed.table(f"four_tactics_files_{what}")
        long = times[times["size"] == times["size"].max()]
        least, most = said[list(ends)]
        said_range = f"{least:g} to {most:g} % of {words} time"
        each = [float(f"{gain:.1g}") for gain in 100 * (long["ingres"] / long["fs"] - 1)]
        found[f"each long command gains {said_range}"] = all(least <= gain <= most for gain in each)
        together = 100 * (long["ingres"].sum() / long["fs"].sum() - 1)
        found[f"all long commands together gain {said_range}"] = supporting(
            bool(least <= together <= most)
        )
    return found
