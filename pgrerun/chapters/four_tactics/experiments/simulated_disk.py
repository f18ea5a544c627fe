"""A disk of 1981, simulated: how long the pages that INGRES asks for take on UNIX's files, and by
tracks.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pgrerun.errors import CannotMeasure
from pgrerun.lab.models import head_travel, read_ahead
from pgrerun.lab.models.replacement import LRU
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.lab.university_ingres import CATALOGS
from pgrerun.record import printed

UNIX, TRACKS = "UNIX", "tracks"
BUFFERS = 128  # pages of 512 bytes that UNIX keeps: 64 kB
TRACK = 32  # pages: 16 kB, as in 4.1; FS-INGRES keeps as many bytes as UNIX, four tracks
TURN = 1 / 60  # s; a disk of 1981 turned 3600 times a minute, and a track is one turn
# By the printed times of which commands on UNIX the time of a request is set.
CALIBRATION = {"query e": "e", "the joins": "fghi", "the scans": "bcd"}
CACHES = (16, 32, 64, BUFFERS, 256)  # pages of 512 bytes
# Of an RM03, a disk of the VAX whose tracks are those of 4.1, and tracks of a cylinder.
CYLINDERS, CYLINDER = 823, 5
PLACES = {"at the edge": 0, "in the middle": CYLINDERS / 2, "anywhere": None}
MONITOR = "INGQ1000"  # the terminal monitor's own file, which is no relation


class Requests(NamedTuple):
    """What one command asks of the disk, and how many pages it asks the kernel for."""

    trace: list[read_ahead.Request]
    touched: int


@experiment(units={"asked": "requests", "requests": "requests", "seconds": "s", "seek": "s"})
def disk_of_1981(bed: Testbed) -> Iterator[Row]:
    """Response time of each long command by the printed CPU time and INGRES's own requests.

    `files` are UNIX's, read ahead as section 4.3 says, or FS-INGRES's tracks; `processor` is the
    system whose printed CPU time is taken (INGRES, FS-INGRES, DC-INGRES). `seek` is what a request
    for one page takes: set so that the commands of `calibration` take on UNIX the printed time
    together. A track takes a turn of the disk more. `asked` are requests to the kernel, `requests`
    those that reach the disk. Goes on from `ingres_requests`.
    """
    commands = _commands(bed).items()
    found = requested(row for (_, tuples), asked in commands if tuples == 3360 for row in asked)
    for calibration, queries in CALIBRATION.items():
        seek = seek_time(found, queries)
        for query, by in found.items():
            for files, processor in (
                (UNIX, "INGRES"),
                (UNIX, "DC-INGRES"),
                (TRACKS, "INGRES"),
                (TRACKS, "FS-INGRES"),
            ):
                yield {
                    "calibration": calibration,
                    "query": query,
                    "files": files,
                    "processor": processor,
                    "asked": by[files].touched,
                    "requests": len(by[files].trace),
                    "seconds": seconds(by, query, files, processor, seek),
                    "seek": seek,
                }


@experiment(units={"asked": "requests", "requests": "requests"}, after=["ingres_requests"])
def unix_cache(bed: Testbed) -> Iterator[Row]:
    """How many of its reads each command finds in UNIX's cache, by the pages that this keeps.

    It is empty when a command begins, and drops what was asked for longest ago. `asked` are reads
    that INGRES asks the kernel for, of catalogs, relations and what it makes meanwhile; `requests`
    those that reach the disk. Goes on from `ingres_requests`.
    """
    for (query, tuples), asked in _commands(bed).items():
        for buffers in CACHES:
            found = _missed(asked, 1, buffers)
            yield {
                "query": query,
                "tuples": tuples,
                "buffers": buffers,
                "asked": found.touched,
                "requests": len(found.trace),
            }


@experiment(
    units={"requests": "requests", "journeys": "journeys", "travel": "cylinders"},
    after=["ingres_requests"],
)
def catalogs_placed(bed: Testbed) -> Iterator[Row]:
    """How far the head travels for each command, by where on the disk the catalogs lie.

    Of what FS-INGRES's buffers don't hold, by tracks (`requests`): the `journeys` between catalogs
    and other files, and the `travel` in all. Other files lie anywhere alike, each in one piece. The
    head begins where the same command left it before. Goes on from `ingres_requests`.
    """
    for (query, tuples), asked in _commands(bed).items():
        trace = _missed(asked, TRACK, BUFFERS // TRACK).trace
        way = [(request.file, request.first // CYLINDER) for request in trace]
        inside = [file in CATALOGS for file, _ in way]
        for catalogs, place in PLACES.items():
            yield {
                "query": query,
                "tuples": tuples,
                "catalogs": catalogs,
                "requests": len(trace),
                "journeys": sum(
                    one != other for one, other in zip(inside, inside[1:] + inside[:1])
                ),
                "travel": head_travel.travelled(way, CATALOGS, place, CYLINDERS),
            }


def _commands(bed: Testbed) -> dict[tuple[Any, ...], list[Row]]:
    """What `ingres_requests` kept, by query and tuples. CannotMeasure unless all queries ran."""
    commands = _by(bed.rows_of("ingres_requests"), "query", "tuples")
    if ("e", 3360) not in commands:
        raise CannotMeasure(
            "ingres_tuples = 3360", "it takes the requests of University INGRES for every query"
        )
    return commands


def _by(rows: Iterable[Row], *factors: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows of `ingres_requests` by these factors, in their order.

    Only requests for pages of relations, of the keyed ones as printed.
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["organization"] != "hash" and row["relation"] != MONITOR:
            found.setdefault(tuple(row[name] for name in factors), []).append(row)
    return found


def requested(rows: Iterable[Row]) -> dict[str, dict[str, Requests]]:
    """By query and kind of files what reaches the disk, of rows of `ingres_requests`."""
    return {
        query: {UNIX: _missed(asked, 1, BUFFERS), TRACKS: _missed(asked, TRACK, BUFFERS // TRACK)}
        for (query,), asked in _by(rows, "query").items()
    }


def _missed(asked: list[Row], pages: int, kept: int) -> Requests:
    """Requests for so many pages that the most recent `kept` ones don't answer."""
    cache, trace, touched = LRU(kept), [], 0
    for row in asked:
        key = row["relation"], row["page"] // pages
        if not row["writes"]:
            if not cache.kept([key]):
                trace.append(read_ahead.Request(touched, *key, pages))
            touched += 1
        cache.use(key)
    return Requests(trace, touched)


def seconds(
    by: Mapping[str, Requests], query: str, files: str, processor: str, seek: float
) -> float:
    """Response time of a query, which computes as long as is printed for `processor`."""
    table, column = {
        "INGRES": ("four_tactics_files_cpu", "ingres"),
        "FS-INGRES": ("four_tactics_files_cpu", "fs"),
        "DC-INGRES": ("four_tactics_compiled_cpu", "dc"),
    }[processor]
    return read_ahead.response(
        *by[files],
        printed.cell(table, f"{query}_3360", column),
        lambda pages: seek if pages == 1 else seek + TURN,
        ahead=files == UNIX,
    )


def seek_time(found: Mapping[str, Mapping[str, Any]], queries: str) -> float:
    """Seconds of a request with which queries together take on UNIX what they took in print."""
    return read_ahead.calibrated(
        lambda seek: sum(seconds(found[query], query, UNIX, "INGRES", seek) for query in queries),
        sum(printed.cell("four_tactics_files_wall", f"{q}_3360", "ingres") for q in queries),
    )
