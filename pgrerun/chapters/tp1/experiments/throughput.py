"""Throughput: the report's ladder; what reusing space within pages costs and saves."""

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.variants import (
    ALONE,
    REPORT_BATCH,
    RUNGS,
    SQL,
    TRANSACTION,
    pooled,
    relations,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, pgbench, processes
from pgrerun.lab.server import Cluster, Server, value

REUSE_BATCH = REPORT_BATCH  # transactions of each client
TRIED = 10  # transactions of each backend that try out a variant, and the least of an observation
UNITS = {
    "throughput": "transactions/s",
    "processor": "share of one processor",
    "checkpoints per transaction": "",
    "waiting": "share of the backends' time",
}
# Seconds that backends waited for pages, where track_io_timing is on.
WAITED = "SELECT (sum(blk_read_time + blk_write_time) / 1000)::float8 FROM pg_stat_database"
REUSED, NOT_REUSED = "space reused in its page", "space not reused"
REUSE_UNITS = {
    "throughput": "transactions/s",
    "accesses": "pages/transaction",
    "wal": "bytes/transaction",
    "growth": "pages/transaction",
}


@experiment()
def ladder(chapter: Chapter) -> None:
    """Rerun the report's ladder: each rung in each block, on a server started for the block.

    The server is held on one processor, as the DECstation had one; pgbench is not.
    """
    driver, fresh = Driver(chapter), Fresh(chapter)
    compared = [
        Variant(name, partial(climb, chapter, driver, name), partial(fresh.prepare, name))
        for name in RUNGS
    ]
    # each block starts its servers anew, so nothing stays warm
    chapter.compare(
        "ladder",
        compared,
        UNITS,
        chapter.fewer_pairs,
        warmup=0,
        positive=["throughput"],
        against=ALONE,
    )


def climb(chapter: Chapter, driver: "Driver", name: str, block: Block) -> dict[str, float]:
    """One observation of a rung."""
    rung = RUNGS[name]
    cluster, bank = pooled(chapter, rung.buffers), relations(chapter)
    load: dict[str, Any] = {"script": SQL.script(rung.script), "variables": bank.variables(cluster)}
    if rung.settings:  # a connection string in the place of the database's name
        settings = {"search_path": cluster.schema} | rung.settings
        options = " ".join(f"-c {setting}={to}" for setting, to in settings.items())
        load["more"] = (f"options='{options}'",)
    return driver.drive(name, cluster, rung.backends, seed=block.seed, **load)


@dataclass
class Fresh:
    """Prepares rungs: once per block and pool, the relations are loaded.

    restart: first start the server anew, on one processor; not where things are only counted.
    """

    chapter: Chapter
    restart: bool = True
    _ready: dict[Cluster, int] = field(default_factory=dict)  # block: rungs share clusters

    def prepare(self, name: str, block: Block) -> bool:
        """Whether anything had to be done for the rung of this name."""
        cluster = pooled(self.chapter, RUNGS[name].buffers)
        if self._ready.get(cluster) == block.index:
            return False
        if self.restart:
            cluster.restart()
            cluster.pin({0})
        relations(self.chapter).load(cluster)
        self._ready[cluster] = block.index
        return True


@dataclass
class Driver:
    """Drives as many transactions as make an observation of the chapter's length.

    Their number is tried out once for each variant. A number, not a time: pgbench counts in whole
    seconds, and every block is to do equal work.
    """

    chapter: Chapter
    lengths: dict[str, int] = field(default_factory=dict)

    def drive(
        self, variant: str, server: Server, backends: int = 0, seed: int = 0, **load: Any
    ) -> dict[str, float]:
        """Metrics as in `UNITS`, of a server that is ours.

        backends: the parameter `clients` unless given. load: for pgbench.
        """
        backends = backends or self.chapter.parameters.clients
        run = partial(pgbench.run, server, clients=backends, seed=seed, **load)
        if variant not in self.lengths:
            seconds = self.chapter.parameters.milliseconds / 1000
            tried = run(transactions=TRIED).tps * seconds / backends
            self.lengths[variant] = max(TRIED, round(tried))
        before, began = _state(server), time.perf_counter()
        done = run(transactions=self.lengths[variant])
        elapsed, after = time.perf_counter() - began, _state(server)
        change = {name: after[name] - before[name] for name in after}
        return {
            "throughput": done.tps,
            "processor": change["processor"] / elapsed,
            "checkpoints per transaction": change["checkpoints"] / done.transactions,
            "waiting": change["waited"] * done.tps / done.transactions / backends,
        }


def _state(server: Server) -> dict[str, float]:
    """Checkpoints so far, seconds that backends waited for pages to be read or written, and
    processor seconds.
    """
    with server.connect() as connection:
        return {
            "checkpoints": counters.checkpoints(connection),
            "waited": value(connection, float, WAITED),
            "processor": processes.usage(server).cpu_seconds,
        }


@experiment(claims=["lai-055"])
def reuse(chapter: Chapter, transactions: int = REUSE_BATCH) -> None:
    """What the transaction costs with dead versions' space reused within pages, and without.

    Reuse is prevented without touching the statements or the indexes: another session holds an old
    snapshot, so that no version may be pruned. Work is counted, so five blocks suffice; each is
    long enough for a branch's versions to need another page many times over.
    """
    server, bank, clients = chapter.server, relations(chapter), chapter.parameters.clients

    def run(name: str, block: Block) -> dict[str, float]:
        given = bank.variables(server)
        with (
            server.connect(autocommit=False) as other,
            counter.measured(idle=[other]) as delta,
        ):
            if name == NOT_REUSED:
                other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                other.execute("SELECT 1")
            done = pgbench.run(
                server,
                SQL.script(TRANSACTION),
                clients=clients,
                transactions=transactions,
                variables=given,
                seed=block.seed,
            )
        ours = delta.relations[delta.relations["schema"] == server.schema]
        after = bank.variables(server)
        return {
            "throughput": done.tps,
            "accesses": ours[["read", "hit"]].sum().sum() / done.transactions,
            "wal": delta.wal_bytes / done.transactions,
            "growth": sum(after[name] - given[name] for name in after) / done.transactions,
        }

    with counters.Counters(server, settle=0.02) as counter:
        compared = [
            Variant(name, partial(run, name), lambda block: bank.load(server))
            for name in (REUSED, NOT_REUSED)
        ]
        chapter.compare("reuse", compared, REUSE_UNITS, pairs=5, warmup=0)
