"""An operating system of its own: what switches and messages cost today, and a command takes."""

import time
from collections.abc import Iterator

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
from pgrerun.lab.instruments import process_table, switch_costs, wire
from pgrerun.lab.server import set_session
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
