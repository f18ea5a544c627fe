"""Where the time of a live server goes: perf's samples of one backend, kernel included."""

import math
import threading

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import breakdown, counted, queries
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.instruments import perf

EXPERIMENT = "samples"


def samples(chapter: Chapter) -> None:
    """Sample the backend that runs Figure 2.1's commands, then one that runs Figure 2.3's, over and over."""
    perf.require()
    cluster = counted.pool(chapter)
    sets = {SCANS: [*queries.scans(), *queries.UNDO], TRANSACTIONS: queries.transactions(chapter, 50)}
    for position, (workload, commands) in enumerate(sets.items()):
        if (0, workload) in chapter.run.finished(EXPERIMENT):
            continue
        found = _watched(cluster, commands, chapter.parameters.seconds).rename(columns={"symbol": "function"})
        found["object"] = found["dso"].str.rpartition("/")[2]
        placed = breakdown.placed(found, cluster._executable("postgres"))
        metrics = placed.groupby(["function", "subsystem"])["samples"].sum()
        named = {counted._SEP.join(key): float(value) for key, value in metrics.items()}
        chapter.run.observe(EXPERIMENT, workload, 0, named, units=dict.fromkeys(named, "samples"), seed=chapter.parameters.seed, position=position, started_at="", flags={})


def _watched(cluster, commands: list[str], seconds: int) -> pd.DataFrame:
    """Samples of a backend while it runs the commands again and again; the last round is finished."""
    enough = threading.Event()
    with cluster.connect() as connection:
        connection.prepare_threshold = None  # every command is parsed and planned, as in a single-user backend

        def work() -> None:
            while not enough.is_set():
                for command in commands:
                    connection.execute(command)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            return perf.sample([connection.info.backend_pid], seconds)
        finally:
            enough.set()
            worker.join()


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
