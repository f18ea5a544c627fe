"""What watching costs: pgbench's log of transactions, the server's own instruments, and perf."""

import contextlib
import resource
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import perf, processes
from pgrerun.lab.server import Server
from pgrerun.lab.server.private import PrivateDirectory, base_directory

# ---- pgbench's log

NO_LOG, FULL_LOG = "no log", "log of all (-l)"
LOGS = {NO_LOG: [], FULL_LOG: ["-l"]}
LONGER, LEAST = 6, 600  # times as long as other runs, and milliseconds at least


@experiment(claims=["haas-073"], needs=["processes"])
def logging(chapter: Chapter) -> None:
    """Lookups by key without pgbench's log and with one of all transactions."""
    given = chapter.parameters
    options = {"variables": load.bank(chapter.server, given.clients).variables}
    lookups = load.Load(chapter.server, "", load.READ, given.clients, options)
    many = lookups.lasting(max(LEAST, LONGER * given.milliseconds), given.seed)
    variants = [Variant(name, partial(logged, lookups, many, how)) for name, how in LOGS.items()]
    units = {"throughput": "transactions/s", "processor": "µs per transaction"}
    chapter.compare("logging", variants, units, warmup=0, positive=["processor"])


def logged(
    lookups: load.Load, transactions: int, options: list[str], block: Block
) -> dict[str, float]:
    """Throughput and processor time with these options of pgbench's log, whose files are removed.

    They are written as pgbench writes them; to read them would cost more than writing them. The
    processor time is that of pgbench and of the server.
    """
    with tempfile.TemporaryDirectory(dir=lookups.server.scratch) as folder:
        where = [f"--log-prefix={folder}/log"] if options else []
        before, pgbench = processes.usage(lookups.server), _children()
        done = lookups.run(transactions, block.seed, more=[*options, *where])
        used = (processes.usage(lookups.server) - before).cpu_seconds + _children() - pgbench
    return {"throughput": load.rate(done), "processor": 1e6 * used / done.transactions}


def _children() -> float:
    """Processor seconds of our programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- profilers


@dataclass(frozen=True)
class Profiler:
    """How a scan is watched.

    prefix  what is put in front of it
    perf    what perf is told, if it watches
    """

    prefix: str = ""
    perf: tuple[str, ...] = ()


UNWATCHED, AGAIN, TIMED = "no profiler", "no profiler, again", "EXPLAIN ANALYZE"
PERF = "perf -g at its own frequency"
PROFILERS = {
    UNWATCHED: Profiler(),
    AGAIN: Profiler(),
    PERF: Profiler(perf=("-e", "cpu-clock", "-g")),
    "perf -g at 99 Hz": Profiler(perf=("-e", "cpu-clock", "-g", "-F", "99")),
    "perf -g at 9,999 Hz": Profiler(perf=("-e", "cpu-clock", "-g", "-F", "9999")),
    TIMED: Profiler("EXPLAIN (ANALYZE, BUFFERS OFF) "),
}


@experiment(claims=["haas-075"], needs=["processes"])
def profilers(chapter: Chapter) -> None:
    """One scan: plain, and under each of `PROFILERS`.

    perf samples by the kernel's timer, as virtual machines often lack the hardware's events.
    """
    perf.require()
    given, server = chapter.parameters, chapter.server
    if not server.owned:
        raise CannotMeasure(
            "processes",
            "perf follows a server's backends from its postmaster, and this server's isn't ours to"
            " follow",
        )
    scan = load.scan(server)
    many = scan.lasting(3 * given.milliseconds, given.seed)
    with watchers(server) as watching:
        variants = [
            Variant(name, partial(profiled, scan, many, name, watching[name])) for name in PROFILERS
        ]
        chapter.compare("profilers", variants, load.TIME, warmup=0)


Watcher = Callable[[], contextlib.AbstractContextManager]


@contextlib.contextmanager
def watchers(server: Server) -> Iterator[dict[str, Watcher]]:
    """For each of `PROFILERS` what watches while a block runs.

    perf is attached to the postmaster, so that it follows the backends started in it.
    """
    postmaster = next(pid for pid, role in server.pids().items() if role == "postmaster")
    found: dict[str, Watcher] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(PrivateDirectory(base_directory())).path
        for number, (name, how) in enumerate(PROFILERS.items()):
            if how.perf:
                attached = perf.attached(postmaster, folder / str(number), *how.perf)
                found[name] = stack.enter_context(attached)
            else:
                found[name] = contextlib.nullcontext
        yield found


def profiled(
    scan: load.Load, transactions: int, name: str, watching: Watcher, block: Block
) -> dict[str, float]:
    """Time of the scan under one of `PROFILERS`."""
    if name == TIMED:
        transactions = max(1, transactions // 3)  # each takes several times as long
    watched = load.Load(
        scan.server,
        PROFILERS[name].prefix + scan.script,
        options={**scan.options, "protocol": "simple"},
    )
    with watching():
        return watched.times(transactions, block)
