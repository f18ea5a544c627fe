"""How a command gets to the engine and its answer back, and what that takes.

By a socket of the file system, over TCP, many commands at a time, by a single-user backend, which
has no client, and by a call of a library. All counts are the kernel's or of calls that are made
here one by one; no library stands between.
"""

import re
from contextlib import ExitStack
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS, STATEMENTS, load
from pgrerun.errors import ServerError
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, proc, single_user, wire
from pgrerun.lab.instruments.wire import LOOPBACK, NETWORK, UNIX
from pgrerun.lab.relations import Parts
from pgrerun.lab.relations.duck import in_memory
from pgrerun.lab.server import Cluster, Server

ALONE, DUCKDB = "single-user backend", "DuckDB, in process"
ROUTES = (UNIX, LOOPBACK, NETWORK)
UNITS = {
    "messages": "per command",
    "client": "switches per command",
    "server": "switches per command",
    "time": "us per command",
    "processor": "us per command",
}
TOGETHER = 50  # commands of a pipeline
LOOKS = 5  # before a single-user backend's commands
ALONE_MORE = 20  # so many more commands by it: what it has computed the kernel notes by ticks


def pipelined(route: str) -> str:
    """The variant that sends many commands at a time."""
    return f"{route}, pipelined"


@experiment()
def connections(chapter: Chapter, commands: int = 150) -> None:
    """A short command by every way there is; for each command:

    messages (calls of the kernel that hand over commands to the engine or answers from it), task
    switches of client and server, and microseconds; but for DuckDB also how many of these a
    processor worked, on either side. On somebody's server there are the way of its URL, and DuckDB.
    CannotMeasure without Linux's process table.
    """
    proc.require()
    with ExitStack() as held:
        load(chapter, chapter.server)
        if chapter.borrowed:
            variants = _of_server(chapter.server, commands, held)
        else:
            # first of all, since to listen it is restarted
            face = held.enter_context(chapter.cluster().listening())
            variants = _of_server(chapter.server, commands, held)
            variants += _of_server(face, commands, held)[:1]
            alone = held.enter_context(Cluster(chapter.programs))
            load(chapter, alone)
            alone.stop()
            variants.append(Variant(ALONE, partial(_alone, alone, commands)))
        duck = held.enter_context(in_memory())
        duck.execute(f"CREATE TABLE parts AS {Parts(chapter.parameters.tuples).select()}")
        duck.execute("CREATE UNIQUE INDEX parts_pnum ON parts (pnum)")
        variants.append(Variant(DUCKDB, partial(_in_process, duck, commands)))
        chapter.compare("ways", variants, UNITS)


def _of_server(server: Server, commands: int, held: ExitStack) -> list[Variant]:
    """A command at a time, and many at a time."""
    line = held.enter_context(wire.Line(server))
    return [
        Variant(line.route, partial(_by_line, line, wire.simple, 1, commands)),
        Variant(pipelined(line.route), partial(_by_line, line, wire.pipelined, TOGETHER, commands)),
    ]


def _by_line(
    line: wire.Line, request: wire.Request, together: int, commands: int, block: Block
) -> dict[str, float]:
    spent = line.run(COMMANDS["short"], commands, request=request, together=together)
    found = {"messages": spent.messages, "client": spent.client, "time": 1e6 * spent.seconds}
    if spent.server is not None:
        found |= {"server": spent.server, "processor": 1e6 * spent.processor}
    return found


def _alone(cluster: Cluster, commands: int, block: Block) -> dict[str, float]:
    """Commands from a file, answers into a file, by a backend that nobody talks to.

    It is asked itself what it has used: no other process disturbs it.
    """
    look, short = STATEMENTS.text("single_user.look"), COMMANDS["short"]
    commands *= ALONE_MORE
    lines = [*[short] * 20, *[look] * LOOKS, *[short] * commands, look]
    text = single_user.run(cluster, lines)
    if text.count('qoh = "') != 20 + commands:
        raise ServerError("A single-user backend didn't answer each command.")
    at = [float(found) for found in re.findall(r'at = "([\d.]+)"', text)]
    computed = [float(found) for found in re.findall(r'computed = "(\d+)', text)]
    calls = [sum(pair) for pair in zip(proc.counts("syscr", text), proc.counts("syscw", text))]
    switches = [
        sum(pair)
        for pair in zip(
            proc.counts(r"\nvoluntary_ctxt_switches", text),
            proc.counts("nonvoluntary_ctxt_switches", text),
        )
    ]
    return {
        "messages": _less_looking(calls) / commands,
        "client": 0,
        "server": (switches[-1] - switches[-2]) / commands,
        "time": 1e6 * _less_looking(at) / commands,
        "processor": 1e-3 * _less_looking(computed) / commands,
    }


def _less_looking(readings: list[float]) -> float:
    """From the last reading but one to the last, without what looking takes itself.

    That is the least of several: one that was held up would make the commands' own time negative.
    """
    looking = min(after - before for before, after in zip(readings[:-2], readings[1:-1]))
    return readings[-1] - readings[-2] - looking


def _in_process(duck, commands: int, block: Block) -> dict[str, float]:
    """By a library in this process; the calls are those that this thread makes meanwhile."""
    switches = proc.switches(proc.THREAD)
    readings = [proc.calls(proc.THREAD) for _ in range(LOOKS)]
    with clock.stopwatch() as watch:
        for _ in range(commands):
            duck.execute(COMMANDS["short"]).fetchall()
    readings.append(proc.calls(proc.THREAD))
    switches = proc.switches(proc.THREAD) - switches
    return {
        "messages": _less_looking(readings) / commands,
        "client": switches / commands,
        "server": 0,
        "time": 1e6 * watch.seconds / commands,
    }
