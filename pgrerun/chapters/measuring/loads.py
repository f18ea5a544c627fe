"""The loads: pgbench's own relations and scripts, and a scan whose length is set to the tuple."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.relations import Pgbench, loading
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Block

SQL = statements.sql_folder(__file__)
TUPLES = 20_000  # that a scan reads if nothing is planted
READ, WRITE = "select-only", "tpcb-like"
TIME = {"time": "ms/transaction"}
_TRIAL = 0.05  # seconds that a trial has to last until its throughput is believed


@dataclass(frozen=True)
class Load:
    """What pgbench runs on a server: a script, or one of its builtins.

    `options` go to `pgbench.run`; statements are prepared unless they say otherwise.
    """

    server: Server
    script: str = ""
    builtin: str = ""
    clients: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, transactions: int, seed: int, **more: Any) -> pgbench.PgbenchResult:
        """So many transactions in all, spread over the clients; `more` as `options`."""
        given = {"jobs": min(self.clients, 2), "protocol": "prepared", **self.options, **more}
        return pgbench.run(
            self.server,
            self.script,
            builtin=self.builtin,
            clients=self.clients,
            transactions=max(1, transactions // self.clients),
            seed=seed,
            **given,
        )

    def throughput(self, seed: int, seconds: float = _TRIAL) -> float:
        """Transactions per second, tried on about so many seconds."""
        tried = 5 * self.clients
        for _ in range(5):
            found = rate(self.run(tried, seed))
            if math.isnan(found):
                continue
            if tried / found > seconds:
                break
            tried = round(found * 2 * seconds)
        if math.isnan(found):
            raise CannotMeasure(
                "undisturbed measurements", "pgbench reports a throughput that can't be"
            )
        return found

    def lasting(self, milliseconds: float, seed: int) -> int:
        """How many transactions take so long and a little more, at least five for each client.

        Tried on a tenth of that. All variants of an experiment do this number, so that their work
        is equal.
        """
        tried = self.throughput(seed, max(_TRIAL, milliseconds / 10_000))
        return max(5 * self.clients, round(1.1 * tried * milliseconds / 1000))

    def times(self, transactions: int, block: Block) -> dict[str, float]:
        """The `TIME` of so many transactions, for an experiment's rows."""
        return {"time": 1000 / rate(self.run(transactions, block.seed))}


def rate(done: pgbench.PgbenchResult) -> float:
    """Transactions per second; NaN where pgbench reports what can't be.

    An experiment takes that as disturbed, and measures again.
    """
    return done.tps if math.isfinite(done.tps) and done.tps > 0 else math.nan


def scan(server: Server, tuples: int = TUPLES) -> Load:
    """A scan of so many tuples of a relation of narrow ones, which is made if it isn't there."""
    with loading.session(server) as connection:
        there = loading.is_ours(connection, "scanned")
    if not there:
        create(server, "scanned", "relations.scanned", tuples=TUPLES * 3 // 2)
    return Load(server, SQL.script("scan"), options={"variables": {"tuples": tuples}})


def bank(server: Server, branches: int) -> Pgbench:
    """pgbench's relations of so many branches; left as they are if they are there."""
    relations = Pgbench(branches)
    if not relations.is_loaded(server):
        relations.load(server)
    return relations


def create(
    server: Server,
    name: str,
    section: str,
    then: str = "",
    **values: int | str,
) -> None:
    """Make a relation by the statements of a section, the first of which creates it.

    After it those of another section are run, if one is given. Frozen and analyzed.
    """
    made = [*SQL.each(section, **values), *(SQL.each(then) if then else [])]
    with loading.session(server) as connection:
        loading.make(connection, name, *made)
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")
