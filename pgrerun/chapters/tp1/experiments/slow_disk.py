"""The report's ladder and its test program on a disk that makes them wait, as its disk did.

Nothing but a ratio of the report's machine is brought here: on its first rung the processor
computed for 42 % of the time and waited for the disk otherwise. Here a request takes 1 / `RATE`
seconds, and each transaction computes so much more that the same holds of this first rung. How
much is fitted anew in each block, as a processor isn't always as fast. What comes out on the other
rungs is measured. Times as such are this machine's and mean nothing.

The first rung commits by a checkpoint, for which two backends wait together. What a second backend
gains is compared where they commit as PostgreSQL does, and that one's lone backend is fitted to the
printed share of its own.
"""

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import psycopg

from pgrerun.chapters.tp1.experiments.throughput import WAITED
from pgrerun.chapters.tp1.variants import (
    ALONE,
    APPEND,
    LONE,
    PAIR,
    RUNGS,
    SQL,
    STABLE,
    TOGETHER,
    backends_of,
    relations,
)
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.instruments import counters, overlap, process_table
from pgrerun.lab.server import private, set_session, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

RATE = 2000  # requests per second
CLIMBED = {name: RUNGS[name] for name in (ALONE, TOGETHER, APPEND, STABLE, LONE, PAIR)}
FITTED = dict.fromkeys(CLIMBED, ALONE) | {LONE: LONE, PAIR: LONE}  # whose computing each has
# times as many transactions where one is that much shorter, as processor time is told in ticks
LONGER = dict.fromkeys((LONE, PAIR), 4)
FILLING = 8  # transactions that fill the pool with changed pages, and the sessions' caches
UNITS = {
    "tps": "transactions/s",
    "processor_share": "share of one processor",
    "disk_share": "share of the disk's time",
    "waiting_share": "share of the backends' time",
    "reads": "requests/transaction",
    "writes": "requests/transaction",
    "computing": "rows/transaction",
}
# in the select list, where rows are counted as they come: those of a function in FROM are stored
# first, on the disk from some hundred thousand on
_COMPUTING = "SELECT count(*) FROM (SELECT generate_series(1, {rows})) AS computed;"
_TRIED, _MOST = 20_000, 300_000  # rows: of the first trial that has more than one, and at most
_GROWTH = 4  # times as many rows, at most, from one trial to the next: one may be far off
_NEITHER = 0.5  # of the disk's time, at most, in which neither disk nor processor works
_TRIALS = 4  # of a block, at most, until one has the printed share, by this much more or less
_NEAR = 0.1


@experiment(units=UNITS, needs=["restart"])
def slow_ladder(bed: Testbed) -> Iterator[Row]:
    """The rungs of the ladder on a disk that serves one request at a time.

    A request is a page read into the pool, a page written from it, or WAL written at commit;
    a flush costs nothing more. Each backend runs as many transactions as any other of the rungs
    that are fitted together, on connections that have run some before. The server is held on one
    processor, and each rung begins with relations loaded anew. What a second backend gains is
    compared in four times as many blocks: with fewer, its word was another one from run to run.
    """
    slow = SlowLadder(bed)
    pair = [LONE, PAIR]
    yield from bed.compare(
        slow.climb,
        {"rung": [name for name in CLIMBED if name not in pair]},
        pairs=bed.timed_pairs(bed.fewest_pairs),
        warmup=0,
        positive=["tps"],
        against=ALONE,
    )
    yield from bed.compare(
        slow.climb,
        {"rung": pair},
        pairs=bed.timed_pairs(2 * bed.fewer_pairs),
        warmup=0,
        positive=["tps"],
        fixed=True,
    )


@dataclass
class Computing:
    """How much a rung's transactions compute, so that its lone backend has the printed share.

    `rows` after each command. What is computed over what the disk works is linear in the rows, and
    `own` of it isn't theirs.
    """

    rows: int = 1
    own: float = 0.0
    slopes: list[float] = field(default_factory=list)

    def correct(self, processor: float, disk: float, wanted: float) -> None:
        """Set the rows by one more trial's shares of processor and disk; the last three count.

        A processor is now faster, now slower, so that an early trial isn't for ever. While neither
        of them works, something is on its way to the client or back: that is waiting as well, and
        as long whatever is computed. What is more than `_NEITHER` of the disk's time is others'.
        """
        disk = max(disk, 1e-3)
        waiting = 1 + min(max(0.0, 1 - processor - disk) / disk, _NEITHER)
        found = processor / disk
        if self.rows == 1:
            self.own, self.rows = found, _TRIED
            return
        self.slopes.append(max(found - self.own, 1e-3) / self.rows)
        rows = (wanted / (1 - wanted) * waiting - self.own) / np.median(self.slopes[-3:])
        self.rows = min(max(2, round(rows)), _GROWTH * self.rows, _MOST)


@dataclass
class SlowLadder:
    """The rungs' clusters, each on a disk of its own, and how much their transactions compute."""

    bed: Testbed
    computing: dict[str, Computing] = field(default_factory=dict)  # by the rung it is fitted to
    fitted: dict[str, int] = field(default_factory=dict)  # block, by the same

    def climb(self, block: Block, rung: str) -> dict[str, float]:
        """One observation of a rung, in a block for which the computing was fitted."""
        lone = FITTED[rung]
        if self.fitted.get(lone) != block.index:
            self.fit(lone, block)
            self.fitted[lone] = block.index
        return self.measured(rung, block, self.computing[lone].rows)

    def measured(self, name: str, block: Block, rows: int) -> dict[str, float]:
        """A rung's metrics, as in `UNITS`, with so many rows computed after each command.

        The relations are loaded anew.
        """
        rung, draws = CLIMBED[name], random.Random(block.seed)
        number = backends_of(self.bed, rung)
        each = self.bed.parameters.counted * LONGER.get(name, 1)
        settings = {
            "shared_buffers": f"{rung.buffers * 8}kB",
            "bgwriter_lru_maxpages": 0,
            # The slowed disk's time stands for what the machine's own would take.
            "fsync": "off",
            "track_io_timing": "on",
        }
        cluster, disk = self.bed.cluster_on_slow_disk(**settings)
        cluster.pin({0})
        relations(self.bed).load(cluster)
        script = computing(SQL.script(rung.script), rows)
        with ExitStack() as stack:
            backends = [stack.enter_context(cluster.connect()) for _ in range(number)]
            for backend in backends:
                backend.prepare_threshold = None  # a command and its computing come as one
                set_session(backend, rung.settings)
            waited = _waited(backends)  # filling the pool, at full speed, adds next to nothing
            filling = computing(SQL.script(rung.script), 1)  # plans all that follows, and no more
            self.run(backends, draws, filling, -(-FILLING // number))
            before = process_table.usage(cluster).cpu_seconds
            with disk.serving(Disk(1 / RATE, 1 / RATE)) as stretch:
                began = time.perf_counter()
                self.run(backends, draws, script, each)
                elapsed = time.perf_counter() - began
            computed = process_table.usage(cluster).cpu_seconds - before
            waited = _waited(backends) - waited
        asked, done = stretch.counts(), number * each
        return {
            "tps": done / elapsed,
            "processor_share": computed / elapsed,
            "disk_share": asked.all.busy / elapsed,
            "waiting_share": waited / elapsed / number,
            "reads": asked.reads.requests / done,
            "writes": asked.writes.requests / done,
            "computing": rows * script.count(_COMPUTING.format(rows=rows)),
        }

    def run(
        self, backends: Sequence[psycopg.Connection], draws: random.Random, script: str, each: int
    ) -> None:
        """So many transactions on each backend, all backends at once."""
        bank, seeds = relations(self.bed), [draws.random() for _ in backends]

        def transactions(backend: psycopg.Connection, seed: float) -> None:
            own = random.Random(seed)
            for _ in range(each):
                bank.run_once(backend, own, script)

        with ThreadPoolExecutor(len(backends)) as pool:
            list(pool.map(transactions, backends, seeds))

    def fit(self, name: str, block: Block) -> None:
        """Let a rung's lone backend compute for the printed share, as fast as the machine is now.

        The very first trial plans and compiles, and counts for nothing.
        """
        wanted = printed.cell("tp1_stages", "one", "cpu_percent") / 100
        if name not in self.computing:
            self.measured(name, block, Computing().rows)
        found = self.computing.setdefault(name, Computing())
        for _ in range(_TRIALS):
            trial = self.measured(name, block, found.rows)
            found.correct(trial["processor_share"], trial["disk_share"], wanted)
            if abs(trial["processor_share"] / wanted - 1) < _NEAR:
                break


def _waited(backends: Sequence[psycopg.Connection]) -> float:
    """Seconds that backends of the database have waited for pages so far, these up to now."""
    counters.force_flush(*backends)
    return value(backends[0], float, WAITED)


def computing(script: str, rows: int) -> str:
    """A script that computes so many rows after each of the report's commands.

    On the line of the command, which is sent as one: another way to the client and back would be
    time in which neither processor nor disk works.
    """
    lines = script.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("SELECT account.*", "UPDATE", "INSERT")):
            lines[number] = f"{line} {_COMPUTING.format(rows=rows)}"
    return "\n".join(lines) + "\n"


@experiment(
    units={
        "processor_share": UNITS["processor_share"],
        "elapsed": "s",
        "disk_share": UNITS["disk_share"],
    }
)
def slow_program(bed: Testbed) -> Iterator[Row]:
    """The report's program as it ran it, alone for the printed share of the processor; then two.

    Requests of the disk take exponential times, as queueing theory has them.
    """
    cycles, where = bed.parameters.cycles, private.base_directory()
    alone = printed.cell("tp1_overlap", "one", "cpu_percent") / 100
    slowed = partial(Disk, 4 / RATE, 4 / RATE, drawn=True)
    with Slowed() as disk, private.PrivateDirectory(where, private.account()) as home:
        with disk.serving(slowed()) as stretch:
            rounds = overlap.calibrate(
                home.path,
                cycles=cycles,
                busy=alone,
                disk=disk,
                worked=lambda: stretch.counts().all.busy,
            )

        def measure(block: Block, copies: int) -> dict[str, float]:
            with disk.serving(slowed(seed=block.seed)) as stretch:
                ran = overlap.run(home.path, copies=copies, cycles=cycles, rounds=rounds, disk=disk)
            busy = stretch.counts().all.busy / ran.elapsed
            return {"processor_share": ran.processor, "elapsed": ran.elapsed, "disk_share": busy}

        yield from bed.compare(measure, {"copies": [1, 2]}, pairs=bed.fewer_pairs, warmup=0)
