"""Throughput: the report's ladder; what reusing space within pages costs and saves."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pgrerun.chapters.tp1.variants import (
    ALONE,
    REPORT_BATCH,
    RUNGS,
    SQL,
    TRANSACTION,
    backends_of,
    pooled,
    relations,
)
from pgrerun.lab.instruments import counters, pgbench, process_table
from pgrerun.lab.server import Cluster, Server, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

TRIED = 10  # transactions of each backend that try out a variant, and the least of an observation
UNITS = {
    "tps": "transactions/s",
    "processor_share": "share of one processor",
    "checkpoints_per_transaction": "",
    "waiting_share": "share of the backends' time",
}
# Seconds that backends waited for pages, where track_io_timing is on.
WAITED = "SELECT (sum(blk_read_time + blk_write_time) / 1000)::float8 FROM pg_stat_database"
REUSED, NOT_REUSED = "reused in its page", "not reused"
REUSE_UNITS = {
    "tps": "transactions/s",
    "accesses": "pages/transaction",
    "wal": "bytes/transaction",
    "growth": "pages/transaction",
    "left_to_vacuum": "versions/transaction",
}


@experiment(units=UNITS)
def ladder(bed: Testbed) -> Iterator[Row]:
    """Rerun the report's ladder: each rung in each block, on a server started for it.

    The server is held on one processor, as the DECstation had one; pgbench is not.
    """
    driver = Driver(bed)

    def climb(block: Block, rung: str) -> dict[str, float]:
        step = RUNGS[rung]
        cluster, bank = pooled(bed, step.buffers), relations(bed)
        load = {"script": SQL.script(step.script), "variables": bank.variables(cluster)}
        if step.settings:  # a connection string in the place of the database's name
            settings = {"search_path": cluster.schema} | step.settings
            options = " ".join(f"-c {setting}={to}" for setting, to in settings.items())
            load["more"] = (f"options='{options}'",)
        return driver.drive(rung, cluster, backends_of(bed, step), seed=block.seed, **load)

    def prepare(block: Block, rung: str) -> None:
        load_anew(bed, pooled(bed, RUNGS[rung].buffers), restart=True)

    # each rung starts its server anew, so nothing stays warm
    yield from bed.compare(
        climb,
        {"rung": list(RUNGS)},
        pairs=bed.timed_pairs(bed.fewer_pairs),
        prepare=prepare,
        warmup=0,
        positive=["tps"],
        against=ALONE,
    )


def load_anew(bed: Testbed, cluster: Cluster, restart: bool = False) -> None:
    """Load a rung's relations anew, so that none begins with what another has left.

    restart: first start the server anew, on one processor; not where things are only counted.
    """
    if restart:
        cluster.restart()
        cluster.pin({0})
    relations(bed).load(cluster)


@dataclass
class Driver:
    """Drives as many transactions as make an observation of the chapter's length.

    Their number is tried out once for each variant. A number, not a time: pgbench counts in whole
    seconds, and every block is to do equal work.
    """

    bed: Testbed
    lengths: dict[str, int] = field(default_factory=dict)

    def drive(
        self, variant: str, server: Server, backends: int, seed: int, **load: Any
    ) -> dict[str, float]:
        """Metrics as in `UNITS`, of a server that is ours; `load` is for pgbench."""
        run = partial(pgbench.run, server, clients=backends, seed=seed, **load)
        if variant not in self.lengths:
            seconds = self.bed.parameters.milliseconds / 1000
            tried = run(transactions=TRIED).tps * seconds / backends
            self.lengths[variant] = max(TRIED, round(tried))
        before, began = _state(server), time.perf_counter()
        done = run(transactions=self.lengths[variant])
        elapsed, after = time.perf_counter() - began, _state(server)
        change = {name: after[name] - before[name] for name in after}
        return {
            "tps": done.tps,
            "processor_share": change["processor"] / elapsed,
            "checkpoints_per_transaction": change["checkpoints"] / done.transactions,
            "waiting_share": change["waited"] * done.tps / done.transactions / backends,
        }


def _state(server: Server) -> dict[str, float]:
    """Checkpoints so far, seconds that backends waited for pages to be read or written, and
    processor seconds.
    """
    with server.connect() as connection:
        return {
            "checkpoints": counters.checkpoints(connection),
            "waited": value(connection, float, WAITED),
            "processor": process_table.usage(server).cpu_seconds,
        }


@experiment(units=REUSE_UNITS)
def reuse(bed: Testbed, transactions: int = REPORT_BATCH) -> Iterator[Row]:
    """What the transaction costs with dead versions' space reused within pages, and without.

    Reuse is prevented without touching the statements or the indexes: another session holds an old
    snapshot, so that no version may be pruned. Work is counted, so five blocks suffice; each is
    long enough for a branch's versions to need another page many times over. What is left to
    vacuum are the dead versions of which something still lies on a page, by the count that
    autovacuum goes by.
    """
    server, bank, clients = bed.server, relations(bed), bed.parameters.clients
    with counters.Counters(server, settle=0.02) as counter:

        def measure(block: Block, space: str) -> dict[str, float]:
            given = bank.variables(server)
            with (
                server.connect(autocommit=False) as other,
                counter.measured(idle=[other]) as delta,
            ):
                if space == NOT_REUSED:
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
            with server.connect() as connection:
                [left] = SQL.run(connection, "heap.left_to_vacuum").fetchone()
            return {
                "tps": done.tps,
                "accesses": float(ours[["read", "hit"]].sum().sum()) / done.transactions,
                "wal": delta.wal_bytes / done.transactions,
                "growth": sum(after[name] - given[name] for name in after) / done.transactions,
                "left_to_vacuum": left / done.transactions,
            }

        yield from bed.compare(
            measure,
            {"space": [REUSED, NOT_REUSED]},
            prepare=lambda block, space: bank.load(server),
            pairs=5,
            warmup=0,
        )
