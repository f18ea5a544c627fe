"""An operating system of its own: what switches and messages cost today, and a command takes."""

import time
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import (
    BENCHMARK,
    COMMANDS,
    SERIAL,
    STATEMENTS,
    load,
    load_benchmark,
)
from pgrerun.chapters.four_tactics.miniature import BRIEF, LONG
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import process_costs, processes, wire
from pgrerun.lab.server import Server, set_session

TIMES = dict.fromkeys(BRIEF, 100) | dict.fromkeys(LONG, 2)
"""Runs, and how often each."""


@experiment(claims=["ston-054", "ston-055"])
def costs(chapter: Chapter, rounds: int = 2000) -> None:
    """Task switch, message, pointer between queues, call into the kernel, switch of tasks: us each.

    As `process_costs.costs` has them.
    """
    variants = [Variant("here", partial(_costs, rounds))]
    chapter.compare("costs", variants, dict.fromkeys(process_costs.COSTS, "us"))


def _costs(rounds: int, block: Block) -> dict[str, float]:
    return process_costs.costs(rounds)


@experiment(claims=["ston-052", "ston-053"], needs=["restart", "processes"])
def commands(chapter: Chapter) -> None:
    """Messages (calls that hand over a command or its answer) and seconds of the backend's CPU.

    For each of the benchmark's commands on the memorandum's relations, whose answer goes into a
    file, as INGRES's did.
    """
    load_benchmark(chapter.server)
    units = {f"messages {run}": "per command" for run in TIMES}
    units |= {f"cpu {run}": "s of CPU per command" for run in TIMES}
    with wire.Line(chapter.server) as line:
        STATEMENTS.run(line.connection, "benchmark.as_ingres")
        chapter.compare("commands", [Variant("here", partial(_commands, line))], units)


def _commands(line: wire.Line, block: Block) -> dict[str, float]:
    spent = {}
    for run, times in TIMES.items():
        one = line.run(f"COPY ({BENCHMARK[run]}) TO '/dev/null'", times, tuples=0)
        spent |= {f"messages {run}": one.messages, f"cpu {run}": one.backend}
    return spent


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
