"""An operating system of its own: what switches and messages cost today, and a command takes."""

import tempfile
import time
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS, SERIAL, load
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import machine, process_costs, processes
from pgrerun.lab.server import Server, set_session


@experiment(claims=["ston-048", "ston-049", "ston-054", "ston-055"])
def costs(chapter: Chapter, rounds: int = 2000) -> None:
    """Task switch, message, pointer between queues, call into the kernel, switch of tasks: us each.

    As `process_costs.costs` has them; and the processor's cycles in a microsecond.
    """
    variants = [Variant("here", partial(_costs, rounds))]
    units = dict.fromkeys(process_costs.COSTS, "us") | {"cycles": "per us"}
    chapter.compare("costs", variants, units)


def _costs(rounds: int, block: Block) -> dict[str, float]:
    return process_costs.costs(rounds) | {"cycles": machine.megahertz()}


@experiment(claims=["ston-052"])
def messages(chapter: Chapter) -> pd.DataFrame:
    """Messages of the wire protocol for commands whose answers differ in size. Exact.

    Columns: tuples, to the server, from the server, with a tuple (of those from the server).
    """
    rows = []
    with chapter.server.connect() as connection:
        connection.prepare_threshold = None
        for tuples in (1, 10, 1000):
            with tempfile.TemporaryFile() as file:
                connection.pgconn.trace(file.fileno())
                connection.execute(f"SELECT n FROM generate_series(1, {tuples}) AS g(n)").fetchall()
                connection.pgconn.untrace()
                file.seek(0)
                trace = file.read().decode("utf-8", "replace")
            # libpq's lines: time, side ("F" the client's), length, kind, content
            lines = [line.split("\t") for line in trace.splitlines()]
            sent = sum(line[1] == "F" for line in lines)
            received = sum(line[1] == "B" for line in lines)
            data = sum("DataRow" in line[2:4] for line in lines)
            rows.append((tuples, sent, received, data))
    columns = ["tuples", "to the server", "from the server", "with a tuple"]
    return pd.DataFrame(rows, columns=columns)


@experiment(claims=["ston-056"], needs=["processes"])
def kernel_share(chapter: Chapter) -> None:
    """The kernel's share of a backend's CPU time while short and long commands run."""
    server = chapter.server
    load(chapter, server)
    variants = [
        Variant(name, partial(_spent, chapter, server, command))
        for name, command in COMMANDS.items()
    ]
    chapter.compare("kernel", variants, {"kernel": "share of CPU"}, warmup=0)


def _spent(chapter: Chapter, server: Server, command: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        set_session(connection, SERIAL)
        before = processes.usage(server)
        until = time.perf_counter() + chapter.parameters.milliseconds / 1000
        while time.perf_counter() < until:
            connection.execute(command).fetchall()
        used = processes.usage(server) - before
    return {"kernel": used.kernel_share("client backend")}
