"""Where the time of a live server goes: perf's samples of one backend, kernel included."""

from collections.abc import Iterator

from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.lab.instruments import perf, sessions
from pgrerun.lab.testbed import Row, Testbed, experiment


@experiment(units={"samples": "samples"})
def samples(bed: Testbed) -> Iterator[Row]:
    """Sample the backend that runs Figure 2.1's commands, then one that runs Figure 2.3's, over and
    over: samples by routine and subsystem.
    """
    perf.require(bed.borrowed)
    # not the cluster whose instructions are counted: rounds leave their versions behind
    server = bed.server
    queries.load_once(bed, server)
    sets = {
        queries.SCANS: [*queries.scans(), *queries.UNDO],
        queries.TRANSACTIONS: queries.transactions(bed, 50),
    }
    for query_set, commands in sets.items():
        with sessions.repeating(server, commands) as backend:
            sampled = perf.sample([backend], bed.parameters.seconds)
        sampled = sampled.rename(columns={"symbol": "function"})
        sampled["object"] = sampled["dso"].str.rpartition("/")[2]
        placed = subsystems.placed(sampled, bed.programs.path("postgres"))
        for (function, part), many in (
            placed.groupby(["function", "subsystem"])["samples"].sum().items()
        ):
            yield {
                "query_set": query_set,
                "routine": function,
                "subsystem": subsystems.NAMES[part],
                "samples": int(many),
            }
    with server.connect() as connection:
        queries.vacuum(connection)
