"""What watching costs: pgbench's log of transactions, the server's own instruments, and perf."""

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import READ, SCAN, TUPLES, bank, drive, lasting, scanned
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import perf, sleeps

# ---- pgbench's log

UNITS = {"throughput": "transactions/s"}
BARE, AGAIN, ALL, FEW, SUMS = "no log", "no log, again", "log of all (-l)", "log of 1 in 100", "log of each second"
LOGS = {BARE: (False, ()), AGAIN: (False, ()), ALL: (True, ()), FEW: (True, ("--sampling-rate=0.01",)), SUMS: (True, ("--aggregate-interval=1",))}


def logging(chapter: Chapter) -> None:
    """Lookups by key with pgbench's log in each of its forms."""
    server, clients = chapter.server, chapter.parameters.clients
    bank(server, clients)
    load = {"builtin": READ, "clients": clients, "variables": {"scale": clients}}
    many = lasting(chapter, server, **load)
    arms = [Arm(name, partial(_lookups, chapter, server, many, load, *how)) for name, how in LOGS.items()]
    chapter.compare("logging", arms, UNITS, warmup=0)  # that was tried out just now


def _lookups(chapter: Chapter, server, transactions: int, load: dict, log: bool, more: tuple, block: Block) -> dict[str, float]:
    # The file is written as pgbench writes it and removed unread: reading it would cost more than writing it.
    with _written_log(server) if log else contextlib.nullcontext([]) as options:
        done = drive(chapter, server, transactions=transactions, seed=block.seed, more=[*options, *more], **load)
    return {"throughput": done.tps}


@contextlib.contextmanager
def _written_log(server) -> Iterator[list[str]]:
    prefix = server.scratch / "watched-log"
    try:
        yield ["-l", f"--log-prefix={prefix}"]
    finally:
        for path in server.scratch.glob(f"{prefix.name}*"):
            path.unlink()


def log_cost(chapter: Chapter) -> statistics.Interval | None:
    """Throughput without the log over that with every transaction in it."""
    return chapter.ratio("logging", "throughput", BARE, ALL)


# ---- profilers

PLAIN, PLAIN_AGAIN, SLOW, FAST, SWITCHES = "no profiler", "no profiler, again", "perf -g at 99 Hz", "perf -g at 9,999 Hz", "perf, context switches"
COUNTED, TIMED = "ANALYZE, TIMING OFF", "EXPLAIN ANALYZE"
WAITS = "wait events at 100 Hz"
_TIMED = "EXPLAIN (ANALYZE, BUFFERS OFF) "


@contextlib.contextmanager
def _waits(server) -> Iterator[None]:
    """A session that looks at the wait events of all others a hundred times a second."""
    over = threading.Event()

    def look() -> None:
        with server.connect() as connection:
            while not over.wait(0.01):
                connection.execute("SELECT pid, wait_event_type, wait_event FROM pg_stat_activity").fetchall()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


_PERF = {SLOW: ("-e", "cpu-clock", "-g", "-F", "99"), FAST: ("-e", "cpu-clock", "-g", "-F", "9999"), SWITCHES: sleeps.options()}
PROFILERS = {name: "" for name in (PLAIN, PLAIN_AGAIN, WAITS, *_PERF)} | {COUNTED: "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) ", TIMED: _TIMED}
"""What is put in front of the scan; who watches from outside is in `watchers`."""


@contextlib.contextmanager
def watchers(server) -> Iterator[dict[str, Callable[[], contextlib.AbstractContextManager]]]:
    """For each of `PROFILERS` what watches while a block runs. perf is attached to the postmaster, so that it follows the backends started in it."""
    postmaster = next(pid for pid, role in server.pids().items() if role == "postmaster")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgrerun-perf-")))
        perfs = {name: stack.enter_context(perf.attached(postmaster, folder / str(number), *options)) for number, (name, options) in enumerate(_PERF.items())}
        yield dict.fromkeys(PROFILERS, contextlib.nullcontext) | {WAITS: partial(_waits, server)} | perfs


def profilers(chapter: Chapter) -> None:
    """One scan: plain, beside a session that samples wait events, under perf, and under the executor's own instrumentation."""
    perf.require()
    chapter.server.require("processes")
    if not chapter.server.owned:
        raise CannotMeasure("processes", "perf follows a server's backends from its postmaster, and this server's isn't ours to follow")
    server = chapter.server
    scanned(server)
    many = lasting(chapter, server, SCAN, variables={"tuples": TUPLES})
    with watchers(server) as watching:
        arms = [Arm(name, partial(_profiled, chapter, server, many, watching[name], prefix)) for name, prefix in PROFILERS.items()]
        chapter.compare("profilers", arms, {"time": "ms per transaction"}, warmup=0)


def _profiled(chapter: Chapter, server, transactions: int, watched: Callable, prefix: str, block: Block) -> dict[str, float]:
    if prefix == _TIMED:
        transactions = max(1, transactions // 3)  # each takes several times as long
    with watched():
        done = drive(chapter, server, prefix + SCAN, transactions=transactions, seed=block.seed, variables={"tuples": TUPLES}, protocol="simple")
    return {"time": 1000 / done.tps}


def cost(chapter: Chapter, name: str) -> statistics.Interval | None:
    """Time of the scan under a profiler over that without."""
    return chapter.ratio("profilers", "time", name, PLAIN)


def instrumented_over_sampled(chapter: Chapter) -> statistics.Interval | None:
    """Time of the scan with every call of a plan's node timed, over that under perf with call graphs."""
    return chapter.ratio("profilers", "time", TIMED, SLOW)
