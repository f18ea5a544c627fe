"""Where the time of a live server goes: perf's samples of one backend, kernel included."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import breakdown, counted, queries
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import perf
from pgrerun.server import Server

EXPERIMENT = "samples"


def samples(chapter: Chapter) -> None:
    """Sample the backend that runs Figure 2.1's commands, then one that runs Figure 2.3's, over and over."""
    perf.require()
    if chapter.borrowed:
        raise CannotMeasure("processes", "perf needs a backend's process id, and this server isn't ours to look into")
    # not the cluster whose instructions are counted: rounds take as long as they take, and leave their versions behind
    server = chapter.server
    queries.at_hand(chapter, server)
    sets = {SCANS: [*queries.scans(), *queries.UNDO], TRANSACTIONS: queries.transactions(chapter, 50)}
    for workload, commands in sets.items():
        if (0, workload) in chapter.run.finished(EXPERIMENT):
            continue
        found = _watched(server, commands, chapter.parameters.seconds).rename(columns={"symbol": "function"})
        found["object"] = found["dso"].str.rpartition("/")[2]
        placed = breakdown.placed(found, server._executable("postgres"))
        metrics = placed.groupby(["function", "subsystem"])["samples"].sum()
        named = {counted._SEP.join(key): float(value) for key, value in metrics.items()}
        counted.keep(chapter, EXPERIMENT, workload, named, "samples")
    with server.connect() as connection:
        queries.swept(connection)


def _watched(server: Server, commands: list[str], seconds: int) -> pd.DataFrame:
    """Samples of a backend while it runs the commands again and again; the last round is finished."""
    enough = threading.Event()
    with server.connect() as connection, ThreadPoolExecutor(1) as beside:
        connection.prepare_threshold = None  # every command is parsed and planned, as in a single-user backend

        def work() -> None:
            while not enough.is_set():
                for command in commands:
                    connection.execute(command)

        working = beside.submit(work)
        try:
            found = perf.sample([connection.info.backend_pid], seconds)
        finally:
            enough.set()
        working.result()  # a command that failed is told
    return found


def shares(chapter: Chapter, workload: str, user_only: bool = False) -> pd.DataFrame:
    """Percent of the samples by subsystem: value, low, high (95 %, by the binomial's normal approximation).

    Of this run or else of the published one; empty if neither has sampled. `user_only` leaves the kernel out.
    """
    found = counted._of(chapter, EXPERIMENT, workload)
    if found.empty:
        return pd.DataFrame()
    by = found.groupby([name.rpartition(counted._SEP)[2] for name in found.index]).sum().reindex(breakdown.SUBSYSTEMS).fillna(0.0)
    if user_only:
        by = by.drop("kernel")
    share, n = by / by.sum(), by.sum()
    error = 1.96 * (share * (1 - share) / n).map(math.sqrt)
    return pd.DataFrame({"value": 100 * share, "low": 100 * (share - error).clip(lower=0), "high": 100 * (share + error)})


def count(chapter: Chapter, workload: str) -> int:
    """Samples taken."""
    return int(counted._of(chapter, EXPERIMENT, workload).sum())
