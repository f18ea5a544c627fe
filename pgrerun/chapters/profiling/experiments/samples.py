"""Where the time of a live server goes: perf's samples of one backend, kernel included."""

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import perf, sessions

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
        with sessions.repeating(server, commands) as backend:
            sampled = perf.sample([backend], chapter.parameters.seconds)
        sampled = sampled.rename(columns={"symbol": "function"})
        sampled["object"] = sampled["dso"].str.rpartition("/")[2]
        placed = subsystems.placed(sampled, chapter.programs.path("postgres"))
        by_routine = placed.groupby(["function", "subsystem"])["samples"].sum()
        metrics = {
            subsystems.SEPARATOR.join(names): float(samples)
            for names, samples in by_routine.items()
        }
        chapter.keep(SAMPLES, workload, metrics, "samples")
    with server.connect() as connection:
        queries.vacuum(connection)
