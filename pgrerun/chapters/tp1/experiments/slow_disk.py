"""The report's ladder and its test program on a disk that makes them wait, as its disk did.

Nothing but a ratio of the report's machine is brought here: on its first rung the processor
computed for 42 % of the time and waited for the disk otherwise. Here a request takes 1 / `RATE`
seconds, and each transaction computes so much more that the same holds of this first rung. What
comes out on the other rungs is measured. Times as such are this machine's and mean nothing.
"""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.experiments.overlap import COPIES
from pgrerun.chapters.tp1.variants import (
    ALONE,
    APPEND,
    LONE,
    PAIR,
    RUNGS,
    SQL,
    STABLE,
    TOGETHER,
    relations,
)
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import overlap, processes
from pgrerun.lab.server import Cluster, set_session
from pgrerun.lab.server.private import PrivateDirectory, account, base_directory
from pgrerun.record import printed

RATE = 2000  # requests per second
CLIMBED = {name: RUNGS[name] for name in (ALONE, TOGETHER, APPEND, STABLE, LONE, PAIR)}
FILLING = 8  # transactions that fill the pool with changed pages, and the sessions' caches
LADDER, PROGRAM = "ladder, slowed disk", "overlap, slowed disk"
UNITS = {
    "throughput": "transactions/s",
    "processor": "share of one processor",
    "disk": "share of the disk's time",
    "reads": "requests/transaction",
    "writes": "requests/transaction",
    "computing": "rows/transaction",
}
_COMPUTING = "SELECT count(*) FROM generate_series(1, {rows});"
_TRIED = 100_000  # rows, to see what one costs


@experiment()
def ladder(chapter: Chapter) -> None:
    """The rungs of the ladder on a disk that serves one request at a time.

    A request is a page read into the pool, a page written from it, or WAL written at commit;
    a flush costs nothing more. Transactions of a block are the same number on each rung and each
    backend, on connections that have run some before. The server is held on one processor.
    """
    slow = _SlowLadder(chapter)
    slow.rows = slow.fitted()
    variants = [Variant(name, partial(slow.climb, name)) for name in CLIMBED]
    chapter.compare(LADDER, variants, UNITS, pairs=5, warmup=0)


@dataclass
class _SlowLadder:
    """The rungs' clusters, each on a disk of its own, and how much their transactions compute."""

    chapter: Chapter
    rows: int = 0  # that are computed after each command
    loaded: dict[Cluster, int] = field(default_factory=dict)  # block: rungs share clusters

    def climb(self, name: str, block: Block) -> dict[str, float]:
        """One observation of a rung, with metrics as in `UNITS`."""
        rung, draws = CLIMBED[name], random.Random(block.seed)
        number = rung.backends or self.chapter.parameters.clients
        cluster, disk = self.prepared(name, block)
        with ExitStack() as stack:
            backends = [stack.enter_context(cluster.connect()) for _ in range(number)]
            for backend in backends:
                set_session(backend, rung.settings)
            script = computing(SQL.script(rung.script), self.rows)
            self.run(backends, draws, script, -(-FILLING // number))
            before = processes.usage(cluster).cpu_seconds
            with disk.serving(Disk(1 / RATE, 1 / RATE)) as stretch:
                began = time.perf_counter()
                self.run(backends, draws, script, self.chapter.parameters.counted)
                elapsed = time.perf_counter() - began
            computed = processes.usage(cluster).cpu_seconds - before
        asked, done = stretch.counts(), number * self.chapter.parameters.counted
        return {
            "throughput": done / elapsed,
            "processor": computed / elapsed,
            "disk": asked.all.busy / elapsed,
            "reads": asked.reads.requests / done,
            "writes": asked.writes.requests / done,
            "computing": self.rows * script.count(_COMPUTING.format(rows=self.rows)),
        }

    def prepared(self, name: str, block: Block) -> tuple[Cluster, Slowed]:
        """A rung's cluster, its relations loaded in this block, and its disk."""
        settings = {"shared_buffers": f"{CLIMBED[name].buffers * 8}kB", "bgwriter_lru_maxpages": 0}
        # The slowed disk's time stands for what the machine's own would take.
        cluster, disk = self.chapter.on_slow_disk(fsync="off", **settings)
        if self.loaded.get(cluster) != block.index:
            cluster.pin({0})
            relations(self.chapter).load(cluster)
            self.loaded[cluster] = block.index
        return cluster, disk

    def run(
        self, backends: Sequence[psycopg.Connection], draws: random.Random, script: str, each: int
    ) -> None:
        """So many transactions on each backend, all backends at once."""
        bank, seeds = relations(self.chapter), [draws.random() for _ in backends]

        def transactions(backend: psycopg.Connection, seed: float) -> None:
            own = random.Random(seed)
            for _ in range(each):
                bank.run_once(backend, own, script)

        with ThreadPoolExecutor(len(backends)) as pool:
            list(pool.map(transactions, backends, seeds))

    def fitted(self) -> int:
        """Rows to compute after a command so that the first rung computes for the printed share."""
        rung, draws, tried = CLIMBED[ALONE], random.Random(0), self.chapter.parameters.counted
        cluster, disk = self.prepared(ALONE, Block(-1, 0, 0))
        script = computing(SQL.script(rung.script), 1)
        with cluster.connect() as backend:
            self.run([backend], draws, script, FILLING)
            start = processes.usage(cluster).cpu_seconds
            with disk.serving(Disk()) as stretch:  # counted, at full speed
                self.run([backend], draws, script, tried)
            own = (processes.usage(cluster).cpu_seconds - start) / tried
            start = processes.usage(cluster).cpu_seconds
            for _ in range(20):
                backend.execute(_COMPUTING.format(rows=_TRIED))
            row = (processes.usage(cluster).cpu_seconds - start) / 20 / _TRIED
        share = printed.cell("tp1_stages", "one", "cpu_percent") / 100
        asked = stretch.counts()
        waited = (asked.reads.requests + asked.writes.requests) / tried / RATE
        commands = script.count(_COMPUTING.format(rows=1))
        return max(1, round((waited * share / (1 - share) - own) / commands / max(row, 1e-9)))


def computing(script: str, rows: int) -> str:
    """A script that computes so many rows after each of the report's commands."""
    lines = []
    for line in script.splitlines():
        lines.append(line)
        if line.startswith(("SELECT account.*", "UPDATE", "INSERT")):
            lines.append(_COMPUTING.format(rows=rows))
    return "\n".join(lines) + "\n"


@experiment()
def read_compute_write(chapter: Chapter) -> None:
    """The report's program as it ran it, alone for the printed share of the processor; then two.

    Requests of the disk take exponential times, as queueing theory has them.
    """
    cycles, where = chapter.parameters.cycles, base_directory()
    alone = printed.cell("tp1_overlap", "one", "cpu_percent") / 100
    slowed = partial(Disk, 4 / RATE, 4 / RATE, drawn=True)
    with Slowed() as disk, PrivateDirectory(where, account()) as home:
        with disk.serving(slowed()) as stretch:
            worked = lambda: stretch.counts().all.busy
            rounds = overlap.calibrate(
                home.path, cycles=cycles, busy=alone, disk=disk, worked=worked
            )

        def copies(number: int, block: Block) -> dict[str, float]:
            with disk.serving(slowed(seed=block.seed)) as stretch:
                ran = overlap.run(home.path, copies=number, cycles=cycles, rounds=rounds, disk=disk)
            busy = stretch.counts().all.busy / ran.elapsed
            return {"processor": ran.processor, "elapsed": ran.elapsed, "disk": busy}

        units = {"processor": UNITS["processor"], "elapsed": "s", "disk": UNITS["disk"]}
        variants = [Variant(name, partial(copies, number)) for number, name in enumerate(COPIES, 1)]
        chapter.compare(PROGRAM, variants, units, warmup=0)
