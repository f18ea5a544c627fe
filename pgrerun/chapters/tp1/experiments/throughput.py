"""Throughput: the report's ladder, the reuse of space, and other bank transactions."""

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.variants import RUNGS, SQL, TRANSACTION, pooled, relations
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, pgbench, processes, sizes
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, Server
from pgrerun.page import tables

# Claims whose published number compares one backend with two.
BACKEND_CLAIMS = ("lai-046", "lai-047", "lai-054", "lai-058", "lai-059")
TRIED = 10  # transactions of each backend that try out a variant, and the least of an observation
UNITS = {
    "throughput": "transactions/s",
    "processor": "share of one processor",
    "checkpoints per transaction": "",
    "growth": "pages/transaction",
}
REUSED, NOT_REUSED = "space reused in its page", "space not reused"
BRANCH_RULE, TPCB_LIKE = "85/15 branch rule", "pgbench tpcb-like"


@experiment()
def differences(chapter: Chapter) -> tables.Table:
    """Figure 2.3's transaction and pgbench's built-in, measured on both sets of relations."""
    cluster, bank = chapter.cluster(), relations(chapter)
    bank.load(cluster)
    frame = bank.against_tpcb_like(cluster, SQL.script(TRANSACTION))
    return tables.table(frame, "The report's transaction and pgbench's built-in")


@experiment(claims=BACKEND_CLAIMS)
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
    chapter.compare("ladder", compared, UNITS, warmup=0)
    if chapter.parameters.clients != 2:
        reason = f"the report ran two backends, and this run {chapter.parameters.clients}"
        chapter.set_aside(CannotMeasure("clients = 2", reason), BACKEND_CLAIMS)


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
        """Metrics as in `UNITS`; the processor's share only of servers that are ours.

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
        metrics = {
            "throughput": done.tps,
            "checkpoints per transaction": change["checkpoints"] / done.transactions,
            "growth": change["pages"] / done.transactions,
        }
        if server.owned:
            metrics["processor"] = change["processor"] / elapsed
        return metrics


def _state(server: Server) -> dict[str, float]:
    """Checkpoints so far, pages in our schema, and processor seconds of a server that is ours."""
    with server.connect() as connection:
        found = {
            "checkpoints": counters.checkpoints(connection),
            "pages": sizes.in_schema(connection)["pages"].sum(),
        }
    if server.owned:
        found["processor"] = processes.usage(server).cpu_seconds
    return found


@experiment(claims=["lai-055"])
def reuse(chapter: Chapter) -> None:
    """Throughput and growth while dead versions' space is reused within pages, and while it can't.

    Reuse is prevented without touching the statements or the indexes: another session
    holds an old snapshot, so that no version may be pruned. The same blocks run the 85/15 branch
    rule and, on a throwaway server, pgbench's own transaction.
    """
    server, bank, driver = chapter.server, relations(chapter), Driver(chapter)
    loads = {
        REUSED: {"script": SQL.script(TRANSACTION)},
        NOT_REUSED: {"script": SQL.script(TRANSACTION)},
        BRANCH_RULE: {"script": SQL.script("branch_rule")},
    }
    if server.owned:  # somebody's may hold pgbench's relations already
        loads[TPCB_LIKE] = {"builtin": "tpcb-like"}
        Pgbench(branches=max(1, bank.accounts // 100_000)).load(server)

    def load(block: Block) -> None:
        bank.load(server)

    def run(name: str, block: Block) -> dict[str, float]:
        given = bank.variables(server)
        with server.connect(autocommit=False) as other:
            if name == NOT_REUSED:
                other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                other.execute("SELECT 1")
            return driver.drive(name, server, seed=block.seed, variables=given, **loads[name])

    compared = [Variant(name, partial(run, name), load) for name in loads]
    chapter.compare("reuse", compared, UNITS, warmup=0)
