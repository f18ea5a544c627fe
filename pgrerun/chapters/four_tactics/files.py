"""A file system of its own: the benchmark on cold files, read by UNIX's means and a track at a time; and how systems read ahead."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.miniature import ALONE, PAGES, RUNS, TRACKS, Miniature
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.ingres import INTERPRETER, THREADED
from pgrerun.server.private import PrivateDirectory, base_directory

SYSTEMS = (PAGES, ALONE, TRACKS)
INTERPRETED = "UNIX, interpreted"
TIMED = tuple(run for run in RUNS if run == "b_1" or run.endswith("_3360"))
LONG_JOINS = ("f_3360", "h_3360")  # dominated by the join itself, they are run with what the print has, and not otherwise
UNITS = {f"{what} {run}": unit for run in TIMED for what, unit in (("wall", "s"), ("cpu", "s of CPU"), ("requests", "reads"))}
CLAIMS = (
    "ston-018", "ston-035", "ston-036", "ston-038", "ston-039", "ston-040", "ston-046", "ston-059",
)  # fmt: skip
_BLOCK = 4096


def cold_files(chapter: Chapter) -> None:
    """The runs of Tables 5 and 6 that have a relation, from files that nothing has cached: wall clock, CPU and reads.

    Qualifications are compiled, so that less of the time is Python's own; once more they are interpreted. CannotMeasure
    where the operating system keeps what it is asked to forget.
    """
    _forgettable()
    with ExitStack() as open_ones:
        minis = {system: open_ones.enter_context(Miniature(system)) for system in SYSTEMS} | {INTERPRETED: open_ones.enter_context(Miniature(PAGES))}
        arms = [Arm(system, partial(_all_runs, mini, system)) for system, mini in minis.items()]
        chapter.compare("cold files", arms, UNITS, warmup=0)  # what is cold needs no warming up


def _all_runs(mini: Miniature, system: str, block: Block) -> dict[str, float]:
    base, spent = mini.base(INTERPRETER if system == INTERPRETED else THREADED), {}
    for run in TIMED:
        if system in (ALONE, INTERPRETED) and run in LONG_JOINS:
            continue
        done = mini.run(base, run, warm=False)
        spent |= {f"wall {run}": done["wall"], f"cpu {run}": done["cpu"], f"requests {run}": done["reads"]}
    return spent


def _fetched() -> int:
    """Bytes that this process has caused to be fetched from storage."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    raise CannotMeasure("process I/O", "The kernel doesn't say what a process has fetched from storage (/proc/self/io).")


@contextmanager
def scratch(megabytes: int) -> Iterator[Path]:
    """A file of so many MB, on the disk, that is gone afterwards."""
    directory = PrivateDirectory(base_directory())
    try:
        path = directory.path / "file"
        with open(path, "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        yield path
    finally:
        directory.close()


def _fetched_for(path: Path, blocks: Sequence[int]) -> int:
    """Bytes fetched from storage while these blocks of a file that was forgotten are read one after another."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        before = _fetched()
        for block in blocks:
            os.pread(descriptor, _BLOCK, block * _BLOCK)
        return _fetched() - before
    finally:
        os.close(descriptor)


def _forgettable() -> None:
    """CannotMeasure where the operating system keeps what it is asked to forget."""
    with scratch(1) as path:
        if _fetched_for(path, [50]) == 0:
            raise CannotMeasure("cold files", f"files in {base_directory()} can't be forgotten by the operating system: a memory file system, perhaps. Name another place in PGRERUN_TMPDIR")


ROW, JUMPS = "40 in a row", "40, with jumps"
_START = 50  # away from the file's start, where the kernel expects a scan
_PATTERNS = {
    "one block": [_START], "two in a row": [_START, _START + 1], "eight far apart": [_START + 110 * n for n in range(8)],
    ROW: list(range(_START, _START + 40)),
    # as a scan of main pages with overflow pages goes: away and back
    JUMPS: [block for n in range(8) for block in (*range(_START + 5 * n, _START + 5 * n + 5), 600 + 50 * n)],
}  # fmt: skip


def read_ahead(chapter: Chapter, megabytes: int = 4) -> pd.DataFrame:
    """What the kernel fetches from storage for a few reads of 4 kB on a cold file: pattern, reads, asked (kB), fetched (kB).

    CannotMeasure where the operating system keeps what it is asked to forget.
    """
    _forgettable()
    rows = []
    for name, blocks in _PATTERNS.items():
        with scratch(megabytes) as path:  # each its own: what is still being fetched ahead can't be forgotten
            rows.append((name, len(blocks), len(blocks) * _BLOCK // 1024, _fetched_for(path, blocks) // 1024))
    return pd.DataFrame(rows, columns=["pattern", "reads", "asked", "fetched"])


def beyond(found: pd.DataFrame) -> pd.Series:
    """What was fetched beyond what was asked for, by pattern (kB)."""
    return found.set_index("pattern").eval("fetched - asked")


def read_ahead_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the kernel needs two reads in a row to fetch ahead, and whether jumps end it: they leave less than half of what it fetches ahead."""
    if found is None:
        return None
    more = beyond(found)
    return {
        "a single read doesn't make it fetch ahead": not more["one block"] > 0,
        "two reads in a row do": bool(more["two in a row"] > 0),
        "jumps away and back end it": bool(more[JUMPS] < more[ROW] / 2),
    }


def improvement(chapter: Chapter, run: str, what: str = "wall", system: str = TRACKS, base: str = PAGES) -> statistics.Interval | None:
    """Time of a run on UNIX files over that a track at a time; `what`: "wall" or "cpu"."""
    return chapter.ratio("cold files", f"{what} {run}", base, system)


def improvements(chapter: Chapter, what: str = "wall", runs: tuple[str, ...] = TIMED, base: str = PAGES) -> dict[str, statistics.Interval] | None:
    """The same by run."""
    found = {run: improvement(chapter, run, what, base=base) for run in runs}
    return None if None in found.values() else found


def of_scans(chapter: Chapter) -> statistics.Interval | None:
    """CPU of the three scans of all narrow tuples together, UNIX over tracks."""
    return _together(chapter, "cpu", ("b_3360", "c_3360", "d_3360"), PAGES, TRACKS)


def _together(chapter: Chapter, what: str, runs: tuple[str, ...], above: str, below: str) -> statistics.Interval | None:
    tables = [chapter.table("cold files", f"{what} {run}") for run in runs]
    if tables[0].empty:
        return None
    total = sum(tables)
    return statistics.ratio(total[above], total[below], seed=chapter.parameters.seed)


def cpu_over_wall(chapter: Chapter) -> statistics.Interval | None:
    """What compiling gains in CPU over what it gains in response, commands on many tuples together but for the long joins, on cold files."""
    runs = [run for run in TIMED if run.endswith("_3360") and run not in LONG_JOINS]
    sums = {what: sum(chapter.table("cold files", f"{what} {run}") for run in runs) for what in ("cpu", "wall")}
    if sums["cpu"].empty:
        return None
    gains = {what: table[INTERPRETED] / table[PAGES] for what, table in sums.items()}
    return statistics.ratio(gains["cpu"], gains["wall"], seed=chapter.parameters.seed)


def diluted(chapter: Chapter) -> statistics.Interval | None:
    """The improvement of query e over that of queries f and h together: the joins' share of CPU dilutes it."""
    walls = [chapter.table("cold files", f"wall {run}") for run in ("e_3360", *LONG_JOINS)]
    if any(wall.empty for wall in walls):
        return None
    scan, joins = ((wall[PAGES] / wall[TRACKS]) for wall in (walls[0], sum(walls[1:])))
    return statistics.ratio(scan, joins, seed=chapter.parameters.seed)


def processor_share(chapter: Chapter) -> pd.DataFrame | None:
    """How much of a cold run's time is CPU, by query and system (%): the rest is waiting for the disk."""
    if chapter.table("cold files", "wall e_3360").empty:
        return None
    rows = []
    for run in (run for run in TIMED if run.endswith("_3360")):
        wall, cpu = chapter.table("cold files", f"wall {run}"), chapter.table("cold files", f"cpu {run}")
        rows.append({"query": run[0]} | {system: 100 * (cpu[system] / wall[system]).median() for system in (PAGES, TRACKS)})
    return pd.DataFrame(rows)


def requests(chapter: Chapter) -> pd.DataFrame | None:
    """Reads asked of the operating system by query: page by page, and a track at a time. Exact."""
    if chapter.table("cold files", "requests e_3360").empty:
        return None
    rows = []
    for run in (run for run in TIMED if run.endswith("_3360")):
        table = chapter.table("cold files", f"requests {run}").iloc[0]
        rows.append((run[0], int(table[PAGES]), int(table[TRACKS])))
    return pd.DataFrame(rows, columns=["query", PAGES, TRACKS])


def printed(table: str = "four_tactics_files_wall") -> dict[str, float]:
    """Old time over new of each run, as printed."""
    return published.derived(table)["speed_up"].to_dict()
