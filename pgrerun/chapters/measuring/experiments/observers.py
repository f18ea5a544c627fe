"""What watching costs: pgbench's log of transactions, the server's own instruments, perf, gprof."""

import contextlib
import resource
import tempfile
from collections.abc import Callable, Iterator

from pgrerun.chapters.measuring import loads
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import perf, process_table
from pgrerun.lab.server import Server, fetched
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

# ---- pgbench's log

NO_LOG, FULL_LOG = "none", "all (-l)"
LOGS = {NO_LOG: [], FULL_LOG: ["-l"]}


@experiment(
    units={"throughput": "transactions/s", "processor": "µs/transaction"}, needs=["processes"]
)
def logging(bed: Testbed) -> Iterator[Row]:
    """Lookups by key without pgbench's log and with one of all transactions."""
    given = bed.parameters
    options = {"variables": loads.bank(bed.server, given.clients).variables}
    lookups = loads.Load(bed.server, "", loads.READ, given.clients, options)
    many = lookups.lasting(given.milliseconds, given.seed)

    def measure(block: Block, logged: str) -> dict[str, float]:
        return logged_lookups(lookups, many, LOGS[logged], block)

    yield from bed.compare(
        measure,
        {"logged": [*LOGS]},
        warmup=0,
        positive=["processor"],
        milliseconds=given.milliseconds,
    )


def logged_lookups(
    lookups: loads.Load, transactions: int, options: list[str], block: Block
) -> dict[str, float]:
    """Throughput and processor time with these options of pgbench's log, whose files are removed.

    They are written as pgbench writes them; to read them would cost more than writing them. The
    processor time is that of pgbench and of the server.
    """
    with tempfile.TemporaryDirectory(dir=lookups.server.scratch) as folder:
        where = [f"--log-prefix={folder}/log"] if options else []
        before, pgbench = process_table.usage(lookups.server), _children()
        done = lookups.run(transactions, block.seed, more=[*options, *where])
        used = (process_table.usage(lookups.server) - before).cpu_seconds + _children() - pgbench
    return {"throughput": loads.rate(done), "processor": 1e6 * used / done.transactions}


def _children() -> float:
    """Processor seconds of our programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- profilers


UNWATCHED, AGAIN, TIMED = "no profiler", "no profiler, again", "EXPLAIN ANALYZE"
PERF, GPROF = "perf -g at its own frequency", "gprof"
# How a scan is watched: what perf is told, if it watches.
PROFILERS: dict[str, tuple[str, ...]] = {
    UNWATCHED: (),
    AGAIN: (),
    PERF: ("-e", "cpu-clock", "-g"),
    "perf -g at 99 Hz": ("-e", "cpu-clock", "-g", "-F", "99"),
    "perf -g at 9,999 Hz": ("-e", "cpu-clock", "-g", "-F", "9999"),
    TIMED: (),
}


@experiment(units=loads.TIME, needs=["processes"])
def profilers(bed: Testbed) -> Iterator[Row]:
    """One scan: plain, and under each of `PROFILERS`.

    perf samples by the kernel's timer, as virtual machines often lack the hardware's events.
    """
    perf.require()
    given, server = bed.parameters, bed.server
    if bed.borrowed:
        raise CannotMeasure(
            "processes",
            "perf follows a server's backends from its postmaster, and this server's isn't ours to"
            " follow",
        )
    scan = loads.scan(server)
    many = scan.lasting(given.milliseconds, given.seed)
    with watchers(server) as watching:

        def measure(block: Block, profiler: str) -> dict[str, float]:
            return profiled(scan, many, profiler, watching[profiler], block)

        yield from bed.compare(
            measure,
            {"profiler": [*PROFILERS]},
            pairs=bed.fewer_pairs,
            warmup=0,
            against=UNWATCHED,
            milliseconds=given.milliseconds,
        )


Watcher = Callable[[], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def watchers(server: Server) -> Iterator[dict[str, Watcher]]:
    """For each of `PROFILERS` what watches while a block runs.

    perf is attached to the postmaster, so that it follows the backends started in it.
    """
    postmaster = next(pid for pid, role in server.pids().items() if role == "postmaster")
    found: dict[str, Watcher] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(PrivateDirectory(base_directory())).path
        for number, (name, told) in enumerate(PROFILERS.items()):
            found[name] = contextlib.nullcontext
            if told:
                attached = perf.attached(postmaster, folder / str(number), *told)
                found[name] = stack.enter_context(attached)
        yield found


def profiled(
    scan: loads.Load, transactions: int, profiler: str, watching: Watcher, block: Block
) -> dict[str, float]:
    """Time of the scan under one of `PROFILERS`."""
    script = scan.script
    if profiler == TIMED:
        script = f"EXPLAIN (ANALYZE, BUFFERS OFF) {script}"
        transactions = max(1, transactions // 3)  # each takes several times as long
    options = {**scan.options, "protocol": "simple"}
    watched = loads.Load(scan.server, script, options=options)
    with watching():
        return watched.times(transactions, block)


BUILDS = {UNWATCHED: "9.2", PERF: "9.2", GPROF: "9.2-profiling"}  # of data/builds.csv


@experiment(units=loads.TIME, needs=["restart", "processes"])
def profilers_of_2012(bed: Testbed) -> Iterator[Row]:
    """The scan on PostgreSQL 9.2: as it is, under perf, and compiled for gprof.

    CannotMeasure unless both builds are registered.
    """
    perf.require()
    given, programs = bed.parameters, {name: fetched.build(name) for name in BUILDS.values()}
    scans = {name: loads.scan(bed.release(one)) for name, one in programs.items()}
    many = scans[BUILDS[UNWATCHED]].lasting(given.milliseconds, given.seed)
    with watchers(scans[BUILDS[PERF]].server) as watching:

        def measure(block: Block, profiler: str, build: str) -> dict[str, float]:
            with watching.get(profiler, contextlib.nullcontext)():
                return scans[build].times(many, block)

        yield from bed.compare(
            measure,
            [{"profiler": profiler, "build": build} for profiler, build in BUILDS.items()],
            pairs=bed.fewer_pairs,
            warmup=0,
            against=UNWATCHED,
            milliseconds=given.milliseconds,
        )
