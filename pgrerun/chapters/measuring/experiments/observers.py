"""What watching costs: pgbench's log of transactions, the server's own instruments, and perf."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import perf, sleeps, waits
from pgrerun.lab.server import Server
from pgrerun.lab.server.private import PrivateDirectory, base_directory

# ---- pgbench's log

NO_LOG, AGAIN, FULL_LOG = "no log", "no log, again", "log of all (-l)"
LOGS = {
    NO_LOG: [],
    AGAIN: [],
    FULL_LOG: ["-l"],
    "log of 1 in 100": ["-l", "--sampling-rate=0.01"],
    "log of each second": ["-l", "--aggregate-interval=1"],
}


@experiment(claims=["haas-073"])
def logging(chapter: Chapter) -> None:
    """Lookups by key with pgbench's log in each of its forms."""
    given = chapter.parameters
    options = {"variables": load.bank(chapter.server, given.clients).variables}
    lookups = load.Load(chapter.server, "", load.READ, given.clients, options)
    many = lookups.lasting(given.milliseconds, given.seed)
    variants = [Variant(name, partial(logged, lookups, many, how)) for name, how in LOGS.items()]
    chapter.compare("logging", variants, {"throughput": "transactions/s"}, warmup=0)


def logged(
    lookups: load.Load, transactions: int, options: list[str], block: Block
) -> dict[str, float]:
    """Throughput with these options of pgbench's log, whose files are removed unread.

    They are written as pgbench writes them; to read them would cost more than writing them.
    """
    with tempfile.TemporaryDirectory(dir=lookups.server.scratch) as folder:
        where = [f"--log-prefix={folder}/log"] if options else []
        done = lookups.run(transactions, block.seed, more=[*options, *where])
    return {"throughput": load.rate(done)}


# ---- profilers


@dataclass(frozen=True)
class Profiler:
    """How a scan is watched.

    prefix  what is put in front of it
    perf    what perf is told, if it watches
    waits   times a second that another session samples wait events
    """

    prefix: str = ""
    perf: tuple[str, ...] = ()
    waits: int = 0


UNWATCHED, PERF, TIMED = "no profiler", "perf -g at 99 Hz", "EXPLAIN ANALYZE"
PROFILERS = {
    UNWATCHED: Profiler(),
    "no profiler, again": Profiler(),
    "wait events at 100 Hz": Profiler(waits=100),
    PERF: Profiler(perf=("-e", "cpu-clock", "-g", "-F", "99")),
    "perf -g at 9,999 Hz": Profiler(perf=("-e", "cpu-clock", "-g", "-F", "9999")),
    "perf, context switches": Profiler(perf=sleeps.options()),
    "ANALYZE, TIMING OFF": Profiler("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) "),
    TIMED: Profiler("EXPLAIN (ANALYZE, BUFFERS OFF) "),
}


@experiment(claims=["haas-075"], needs=["processes"])
def profilers(chapter: Chapter) -> None:
    """One scan: plain, and under each of `PROFILERS`."""
    perf.require()
    given, server = chapter.parameters, chapter.server
    if not server.owned:
        raise CannotMeasure(
            "processes",
            "perf follows a server's backends from its postmaster, and this server's isn't ours to"
            " follow",
        )
    scan = load.scan(server)
    many = scan.lasting(given.milliseconds, given.seed)
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
            elif how.waits:
                found[name] = partial(waits.sampled, server, 1 / how.waits)
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
