"""What watching costs: pgbench's log of transactions, the server's own instruments, perf, gprof."""

import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pgrerun.chapters.measuring import loads
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import callgrind, perf, sessions
from pgrerun.lab.server import Server, fetched, private
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

# ---- pgbench's log

NO_LOG, FULL_LOG = "none", "all (-l)"
LOGS = {NO_LOG: [], FULL_LOG: ["-l"]}
PER_PROCESSOR = 4  # clients, so that none is idle while messages travel
MOST = 64  # clients; a server as it comes has room for them
EVERY = 0.5  # seconds after which what there is of a log is written to the disk
COUNTED = (200, 1200)  # transactions of a shorter run and of a longer one
_TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)


@experiment(
    units={
        "throughput": "transactions/s",
        "bytes": "bytes/transaction",
        "written": "share of the log",
    }
)
def logs(bed: Testbed) -> Iterator[Row]:
    """Lookups by key without pgbench's log and with one of all transactions.

    The kernel keeps what is written to a file in memory for half a minute, so that of a short run's
    log nothing goes to the disk before the run is over, and of the talk's runs of minutes nearly
    all. Here the log is written to the disk as it grows: `written` is the share of it that is there
    before the run is over. Three times the pairs of others, as a run's throughput varies by more.
    """
    given, processors = bed.parameters, len(os.sched_getaffinity(0))
    clients = max(given.clients, min(MOST, PER_PROCESSOR * processors))
    variables = loads.bank(bed.server, given.clients).variables
    options = {"variables": variables, "jobs": min(clients, processors)}
    lookups = loads.Load(bed.server, "", loads.READ, clients, options)
    many = lookups.lasting(given.milliseconds, given.seed)

    def measure(block: Block, logged: str) -> dict[str, float]:
        return logged_lookups(lookups, many, LOGS[logged], block)

    yield from bed.compare(
        measure,
        {"logged": [*LOGS]},
        pairs=3 * int(given.pairs),
        warmup=0,
        positive=["throughput"],
        fixed=True,
        milliseconds=given.milliseconds,
    )


def logged_lookups(
    lookups: loads.Load,
    transactions: int,
    options: Sequence[str],
    block: Block,
    every: float = EVERY,
) -> dict[str, float]:
    """Throughput with these options of pgbench's log, and its bytes; its files are removed."""
    with tempfile.TemporaryDirectory(dir=lookups.server.scratch) as name:
        folder = Path(name)
        where = [f"--log-prefix={folder}/log"] if options else []
        with written_out(folder, every) as written:
            done = lookups.run(transactions, block.seed, more=[*options, *where])
        size = sum(path.stat().st_size for path in folder.iterdir())
    found = {"throughput": loads.rate(done), "bytes": size / done.transactions}
    return found | ({"written": written[-1] / size} if size else {})


@contextlib.contextmanager
def written_out(folder: Path, every: float) -> Iterator[list[int]]:
    """Write a folder's files to the disk every so many seconds, as the kernel would a while later.

    Gives the bytes of them that were there after each time, from 0 on; what is written when the
    block is over already isn't among them.
    """
    there = [0]

    def write(over: threading.Event) -> None:
        while not over.wait(every):
            size = 0
            for path in folder.iterdir():
                file = private.opened(path)
                try:
                    size += os.fstat(file).st_size
                    os.fdatasync(file)
                finally:
                    os.close(file)
            if not over.is_set():
                there.append(size)

    with sessions.meanwhile(write):
        yield there


@experiment(units={"instructions": "instructions/transaction", "bytes": "bytes/transaction"})
def log_lines(bed: Testbed) -> Iterator[Row]:
    """Instructions that pgbench executes for a lookup, without its log and with it, and its bytes.

    By one client: what a longer run has more of than a shorter one, so that neither its start nor
    connecting counts. What the kernel does to write the log isn't in it. CannotMeasure without
    valgrind.
    """
    callgrind.require()
    loads.bank(bed.server, bed.parameters.clients)
    first, last = COUNTED
    for logged, options in LOGS.items():
        short, long = (_executed(bed, many, options) for many in COUNTED)
        each = [(more - less) / (last - first) for less, more in zip(short, long, strict=True)]
        yield {"logged": logged, "instructions": each[0], "bytes": each[1]}


def _executed(bed: Testbed, transactions: int, options: Sequence[str]) -> tuple[int, int]:
    """Instructions of pgbench in so many lookups, and bytes of its log."""
    server = bed.server
    with private.passing(server.scratch, "executed") as stem:
        counting = ["--tool=callgrind", "--quiet", f"--callgrind-out-file={stem}.dump"]
        where = [*options, f"--log-prefix={stem}.log"] if options else []
        many = ["-n", "-t", transactions, f"--random-seed={bed.parameters.seed}"]
        load = [server._executable("pgbench"), "-M", "prepared", "-b", loads.READ]
        length = f"{transactions:,} transactions, under valgrind"
        statement_log.log_load(f"pgbench -b {loads.READ}", "prepared", 1, length)
        server.tool(shutil.which("valgrind") or "valgrind", *counting, *load, *many, *where)
        with open(private.opened(f"{stem}.dump"), errors="replace") as file:
            found = _TOTAL.search(file.read())
        if found is None:
            raise CannotMeasure("callgrind", "valgrind left no total of what pgbench executed")
        lines = server.scratch.glob(f"{stem.name}.log*")
        return int(found[1]), sum(path.stat().st_size for path in lines)


# ---- profilers


UNWATCHED, TIMED = "no profiler", "EXPLAIN ANALYZE"
PERF, PERF_OF_2012, GPROF = "perf -g at its own frequency", "perf -g at 1,000 Hz", "gprof"
SAMPLED = ("-e", "cpu-clock", "-g")
# How a scan is watched: what perf is told, if it watches.
PROFILERS: dict[str, tuple[str, ...]] = {
    UNWATCHED: (),
    PERF: SAMPLED,
    "perf -g at 99 Hz": (*SAMPLED, "-F", "99"),
    TIMED: (),
}


@experiment(units=loads.TIME, needs=["processes"])
def profilers(bed: Testbed) -> Iterator[Row]:
    """One scan: plain, and under each of `PROFILERS`.

    perf samples by the kernel's timer, as virtual machines often lack the hardware's events.
    """
    perf.require(bed.borrowed)
    given, server = bed.parameters, bed.server
    scan = loads.scan(server)
    many = scan.lasting(given.milliseconds, given.seed)
    with watchers(server, PROFILERS) as watching:

        def measure(block: Block, profiler: str) -> dict[str, float]:
            return profiled(scan, many, profiler, watching[profiler], block)

        yield from bed.compare(
            measure,
            {"profiler": [*PROFILERS]},
            pairs=ENOUGH_PAIRS,
            warmup=0,
            against=UNWATCHED,
            milliseconds=given.milliseconds,
        )


Watcher = Callable[[], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def watchers(server: Server, told: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, Watcher]]:
    """For each profiler what watches while a block runs, by what perf is `told`, if it watches.

    perf is attached to the postmaster, so that it follows the backends started in it.
    """
    postmaster = next(pid for pid, role in server.pids().items() if role == "postmaster")
    found: dict[str, Watcher] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(PrivateDirectory(base_directory())).path
        for number, (name, options) in enumerate(told.items()):
            found[name] = contextlib.nullcontext
            if options:
                attached = perf.attached(postmaster, folder / str(number), *options)
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


# Until 2012, up to Linux 3.4, perf's own frequency was a quarter of today's.
OF_2012 = {PERF: SAMPLED, PERF_OF_2012: (*SAMPLED, "-F", "1000")}
BUILDS = dict.fromkeys((UNWATCHED, *OF_2012), "9.2") | {GPROF: "9.2-profiling"}  # of builds.csv


@experiment(units=loads.TIME, needs=["restart", "processes"])
def profilers_of_2012(bed: Testbed) -> Iterator[Row]:
    """The scan on PostgreSQL 9.2: as it is, under perf at two rates, and compiled for gprof.

    CannotMeasure unless both builds are registered.
    """
    perf.require()
    given, programs = bed.parameters, {name: fetched.build(name) for name in BUILDS.values()}
    scans = {name: loads.scan(bed.release(one)) for name, one in programs.items()}
    # each its own number: compiled for gprof, a scan takes several times as long
    many = {name: one.lasting(given.milliseconds, given.seed) for name, one in scans.items()}
    with watchers(scans[BUILDS[PERF]].server, OF_2012) as watching:

        def measure(block: Block, profiler: str, build: str) -> dict[str, float]:
            with watching.get(profiler, contextlib.nullcontext)():
                return scans[build].times(many[build], block)

        yield from bed.compare(
            measure,
            [{"profiler": profiler, "build": build} for profiler, build in BUILDS.items()],
            warmup=0,
            against=UNWATCHED,
            milliseconds=given.milliseconds,
        )
