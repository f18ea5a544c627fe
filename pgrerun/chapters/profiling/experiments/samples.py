"""Where the time of a live server goes: perf's samples of one backend, kernel included."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.chapters.profiling.experiments import single_user
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import perf
from pgrerun.lab.server import Server

SAMPLES = "samples"


@experiment()
def samples_by_routine(chapter: Chapter) -> None:
    """Sample the backend that runs Figure 2.1's commands, then one that runs Figure 2.3's, over and
    over.
    """
    perf.require()
    if chapter.borrowed:
        raise CannotMeasure(
            "processes",
            "perf needs a backend's process id, and this server isn't ours to look into",
        )
    # not the cluster whose instructions are counted: rounds leave their versions behind
    server = chapter.server
    queries.load_once(chapter, server)
    sets = {
        SCANS: [*queries.scans(), *queries.UNDO],
        TRANSACTIONS: queries.transactions(chapter, 50),
    }
    for workload, commands in sets.items():
        if (0, workload) in chapter.run.finished(SAMPLES):
            continue
        sampled = _sample(server, commands, chapter.parameters.seconds)
        sampled = sampled.rename(columns={"symbol": "function"})
        sampled["object"] = sampled["dso"].str.rpartition("/")[2]
        placed = subsystems.placed(sampled, chapter.programs.path("postgres"))
        by_routine = placed.groupby(["function", "subsystem"])["samples"].sum()
        metrics = {
            single_user.SEPARATOR.join(names): float(samples)
            for names, samples in by_routine.items()
        }
        single_user.keep(chapter, SAMPLES, workload, metrics, "samples")
    with server.connect() as connection:
        queries.vacuum(connection)


def _sample(server: Server, commands: list[str], seconds: int) -> pd.DataFrame:
    """Samples of a backend while it runs the commands again and again, to the last one's end."""
    enough = threading.Event()
    with server.connect() as connection, ThreadPoolExecutor(1) as beside:
        # every command is parsed and planned, as in a single-user backend
        connection.prepare_threshold = None

        def work() -> None:
            while not enough.is_set():
                for command in commands:
                    connection.execute(command)

        working = beside.submit(work)
        try:
            sampled = perf.sample([connection.info.backend_pid], seconds)
        finally:
            enough.set()
        working.result()  # a command that failed is told
    return sampled
