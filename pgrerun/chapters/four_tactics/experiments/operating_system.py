"""An operating system of its own: what switches and messages cost today, and a command takes.

How a command gets to the engine and its answer back: by a socket of the file system, over TCP, many
commands at a time, by a single-user backend, which has no client, and by a call of a library. All
counts are the kernel's or of calls that are made here one by one; no library stands between.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from pgrerun.chapters.four_tactics.experiments.parts import (
    BRIEF,
    COMMANDS,
    LONG,
    SERIAL,
    SQL,
    load,
    load_benchmark,
    run_text,
)
from pgrerun.errors import ServerError
from pgrerun.lab.instruments import clock, process_table, single_user, switch_costs, wire
from pgrerun.lab.relations import Parts
from pgrerun.lab.relations.duck import in_memory
from pgrerun.lab.server import Cluster, Server, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment


@experiment(units=dict.fromkeys(switch_costs.COSTS, "us"))
def costs(bed: Testbed, rounds: int = 2000) -> Iterator[Row]:
    """Switch of processes, message, pointer between queues, call into the kernel, switch of tasks.

    As `switch_costs.ipc_costs` has them.
    """
    yield from bed.compare(lambda block: switch_costs.ipc_costs(rounds), [{}])


@experiment(units={"instructions": "instructions"})
def bare_costs(bed: Testbed) -> Iterator[Row]:
    """Instructions of a switch and of a message in a system that does nothing else.

    As `switch_costs.bare_instructions` counts them, on a processor of today.
    """
    for what, count in switch_costs.bare_instructions().items():
        yield {"what": what, "instructions": count}


@experiment(
    units={"messages": "messages", "cpu": "s"},
    needs=["restart", "processes"],
)
def commands(bed: Testbed) -> Iterator[Row]:
    """Messages and CPU time of the backend, of each of the benchmark's commands.

    Messages are calls that hand over a command or its answer. The answer goes into a file, as
    INGRES's did.
    """
    load_benchmark(bed.server)
    with wire.Line(bed.server) as line:
        SQL.run(line.connection, "benchmark.as_ingres")

        def measure(block: Block, query: str, tuples: int) -> dict[str, float]:
            times = 100 if tuples < 2 else 2
            command = f"COPY ({run_text(query, tuples)}) TO '/dev/null'"
            spent = line.run(command, times, tuples=0)
            return {"messages": spent.messages, "cpu": spent.backend}

        runs = [{"query": query, "tuples": tuples} for query, tuples in [*BRIEF, *LONG]]
        yield from bed.compare(measure, runs)


@experiment(units={"kernel": ""}, needs=["processes"])
def kernel_share(bed: Testbed) -> Iterator[Row]:
    """The kernel's share of a backend's CPU time while short and long commands run."""
    server = bed.server
    load(bed, server)

    def measure(block: Block, command: str) -> dict[str, float]:
        with server.connect() as connection:
            set_session(connection, SERIAL)
            before = process_table.usage(server)
            until = time.perf_counter() + bed.parameters.milliseconds / 1000
            while time.perf_counter() < until:
                connection.execute(COMMANDS[command]).fetchall()
            used = process_table.usage(server) - before
        return {"kernel": used.kernel_share("client backend")}

    yield from bed.compare(measure, {"command": list(COMMANDS)}, warmup=0)


# ---- to the engine and back

TOGETHER = 50  # commands of a pipeline
LOOKS = 5  # before a single-user backend's commands
ALONE_MORE = 20  # so many more commands by it: what it has computed the kernel notes by ticks

Ways = dict[str, Callable[[], dict[str, float]]]


@experiment(
    units={
        "messages": "messages",
        "client": "switches",
        "server": "switches",
        "time": "us",
        "processor": "us",
    }
)
def ways(bed: Testbed, commands: int = 150) -> Iterator[Row]:
    """A short command by every way there is; for each command:

    messages (calls of the kernel that hand over commands to the engine or answers from it), task
    switches of client and server, and microseconds; but for DuckDB also how many of these a
    processor worked, on either side. On somebody's server there are the way of its URL, and DuckDB.
    CannotMeasure without Linux's process table.
    """
    process_table.require()
    with ExitStack() as held:
        load(bed, bed.server)
        if bed.borrowed:
            found = _of_server(bed.server, commands, held)
        else:
            # first of all, since to listen it is restarted
            face = held.enter_context(bed.cluster().listening())
            found = _of_server(bed.server, commands, held)
            found |= dict(list(_of_server(face, commands, held).items())[:1])
            alone = held.enter_context(Cluster(bed.programs))
            load(bed, alone)
            alone.stop()
            found["single-user backend"] = partial(_alone, alone, commands)
        duck = held.enter_context(in_memory())
        duck.execute(f"CREATE TABLE parts AS {Parts(bed.parameters.tuples).select()}")
        duck.execute("CREATE UNIQUE INDEX parts_pnum ON parts (pnum)")
        found["DuckDB, in process"] = partial(_in_process, duck, commands)
        pairs = bed.timed_pairs(bed.parameters.pairs)
        yield from bed.compare(lambda block, way: found[way](), {"way": list(found)}, pairs=pairs)


def _of_server(server: Server, commands: int, held: ExitStack) -> Ways:
    """A command at a time, and many at a time."""
    line = held.enter_context(wire.Line(server))
    return {
        line.route: partial(_by_line, line, wire.simple, 1, commands),
        f"{line.route}, pipelined": partial(_by_line, line, wire.pipelined, TOGETHER, commands),
    }


def _by_line(
    line: wire.Line, request: wire.Request, together: int, commands: int
) -> dict[str, float]:
    spent = line.run(COMMANDS["short"], commands, request=request, together=together)
    found = {"messages": spent.messages, "client": spent.client, "time": 1e6 * spent.seconds}
    if spent.server is not None:
        found |= {"server": spent.server, "processor": 1e6 * spent.processor}
    return found


def _alone(cluster: Cluster, commands: int) -> dict[str, float]:
    """Commands from a file, answers into a file, by a backend that nobody talks to.

    It is asked itself what it has used: no other process disturbs it.
    """
    look, short = SQL.text("single_user.look"), COMMANDS["short"]
    commands *= ALONE_MORE
    lines = [*[short] * 20, *[look] * LOOKS, *[short] * commands, look]
    text = single_user.run(cluster, lines)
    if text.count('qoh = "') != 20 + commands:
        raise ServerError("A single-user backend didn't answer each command.")
    at = [float(found) for found in re.findall(r'at = "([\d.]+)"', text)]
    computed = [float(found) for found in re.findall(r'computed = "(\d+)', text)]
    calls = _both("syscr", "syscw", text)
    switches = _both(r"\nvoluntary_ctxt_switches", "nonvoluntary_ctxt_switches", text)
    return {
        "messages": _less_looking(calls) / commands,
        "client": 0,
        "server": (switches[-1] - switches[-2]) / commands,
        "time": 1e6 * _less_looking(at) / commands,
        "processor": 1e-3 * _less_looking(computed) / commands,
    }


def _both(one: str, other: str, text: str) -> list[float]:
    """The sums of two of the kernel's counts, at each look."""
    counts = (process_table.parse_counts(name, text) for name in (one, other))
    return [sum(pair) for pair in zip(*counts)]


def _less_looking(readings: list[float]) -> float:
    """From the last reading but one to the last, without what looking takes itself.

    That is the least of several: one that was held up would make the commands' own time negative.
    """
    looking = min(after - before for before, after in zip(readings[:-2], readings[1:-1]))
    return readings[-1] - readings[-2] - looking


def _in_process(duck: Any, commands: int) -> dict[str, float]:
    """By a library in this process; the calls are those that this thread makes meanwhile."""
    switches = process_table.count_switches(process_table.THREAD)
    readings = [process_table.count_calls(process_table.THREAD) for _ in range(LOOKS)]
    with clock.stopwatch() as watch:
        for _ in range(commands):
            duck.execute(COMMANDS["short"]).fetchall()
    readings.append(process_table.count_calls(process_table.THREAD))
    switches = process_table.count_switches(process_table.THREAD) - switches
    return {
        "messages": _less_looking(readings) / commands,
        "client": switches / commands,
        "server": 0,
        "time": 1e6 * watch.seconds / commands,
    }
