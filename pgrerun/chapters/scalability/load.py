"""What all experiments share: the servers under test, pgbench's relations on them, and loads."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import off_cpu, pgbench
from pgrerun.lab.relations.pgbench import BRANCHES, TELLERS, Pgbench
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Block, Row, Testbed, shortened

SQL = statements.sql_folder(__file__)
SLOTS = 1024  # locks on the fast path of each backend (PostgreSQL 18; sixteen before)
ACCOUNTS = 100_000  # of pgbench, per unit of scale
SMALL_POOL = "2MB"
LEAST = 20  # transactions of each client, so that no load is over before all are at work
TPS = {"tps": "transactions/s"}
OBSERVED = TPS | dict.fromkeys(("messages", "voluntary", "involuntary"), "per transaction")


def processors() -> int:
    """Processors that server and clients may use together."""
    return len(os.sched_getaffinity(0))


def several() -> int:
    """Processors that may be used; CannotMeasure if it is only one."""
    if (found := processors()) < 2:
        raise CannotMeasure("2 processors", "only one processor may be used here")
    return found


def crowd_size() -> int:
    """Clients where many are wanted on few processors."""
    return 4 * processors()


# ---- servers


def connections(bed: Testbed) -> int:
    """Connections that the throwaway servers allow."""
    return max(bed.parameters.most_clients, bed.parameters.commit_clients) + 4 * processors() + 20


def ours(bed: Testbed) -> dict[str, str | int]:
    """Settings of the throwaway servers: room for all clients, and for the locks of partitions."""
    return {"max_connections": connections(bed), "max_locks_per_transaction": SLOTS}


# with room for the WAL of what is counted, so that no checkpoint comes but ours
UNFLUSHED: dict[str, str | int] = {"synchronous_commit": "off", "max_wal_size": "16GB"}


def roomy_pool(bed: Testbed) -> dict[str, str | int]:
    """A setting by which all of `relations` fit into the pool, also of an old release.

    It has room for what writers leave: a new version of each account, and their history.
    """
    return {"shared_buffers": f"{max(64, 40 * bed.parameters.scale)}MB"}


def in_memory(bed: Testbed) -> dict[str, str | int]:
    """Settings by which all is in the pool, no commit waits and no checkpoint comes."""
    return ours(bed) | UNFLUSHED | roomy_pool(bed)


def server(bed: Testbed) -> Server:
    """The server under test: the reader's own, or a throwaway one."""
    return bed.guest or bed.cluster(**ours(bed))


def relations(bed: Testbed) -> Pgbench:
    """pgbench's relations, about `scale` times 100,000 accounts.

    There is a branch for each connection, so that writers seldom meet on one, as pgbench's manual
    asks for.
    """
    branches = connections(bed)
    return Pgbench(branches, round(bed.parameters.scale * ACCOUNTS / branches), prefix="scaling_")


def loaded(bed: Testbed, tested: Server | None = None) -> Server:
    """A server (default: the one under test) with `relations`, loaded unless it has them.

    Branches and tellers have room for updates.
    """
    tested, wanted = tested or server(bed), relations(bed)
    if not wanted.is_loaded(tested):
        wanted.load(tested, fillfactor={BRANCHES: 20, TELLERS: 20})
    return tested


# ---- loads


def client_counts(bed: Testbed) -> list[int]:
    """Numbers of clients of the sweep over lookups.

    They double up to one client per processor, then go in larger steps up to `most_clients`;
    `one_per_processor` is among them.
    """
    most, counts = allowed(bed, bed.parameters.most_clients), [1]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] * (2 if counts[-1] < processors() else 4)))
    return sorted({*counts, min(processors(), most)})


def one_per_processor(bed: Testbed) -> int:
    """As many clients as processors, or as many of them as there may be."""
    return min(processors(), client_counts(bed)[-1])


def allowed(bed: Testbed, most: int) -> int:
    """So many clients, or as many of them as somebody's server has room for."""
    return max(2, min(most, bed.guest.room)) if bed.guest else most  # type: ignore[attr-defined]


@dataclass
class Load:
    """So many clients that run a script, prepared; pgbench has a thread per processor.

    Each client runs as many transactions as take so many `seconds`, which is tried out before the
    first run. `around` makes a context for each run.
    """

    bed: Testbed
    server: Server
    script: str
    clients: int
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    told: bool = False
    together: int = 1  # scripts that a client sends before it waits for an answer

    transactions: int = 0

    def lasting(self) -> int:
        """Transactions of each client in one run, `LEAST` at least: tried out once."""
        wanted, each = shortened(self.bed.parameters.seconds, self.told), LEAST
        while not self.transactions:
            done = self._run(each, self.bed.parameters.seed)
            taken = done.transactions / done.tps
            if taken > wanted / 20:
                self.transactions = max(LEAST, round(each * wanted / taken))
            each *= 10
        return self.transactions

    @property
    def text(self) -> str:
        """What pgbench runs: the script, or so many of it in a pipeline, each a transaction."""
        one = SQL.script(self.script)
        if self.together == 1:
            return one
        return "\\startpipeline\n" + self.together * f"{one}\\syncpipeline\n" + "\\endpipeline\n"

    def _run(self, each: int, seed: int) -> pgbench.PgbenchResult:
        return pgbench.run(
            self.server,
            self.text,
            clients=self.clients,
            jobs=min(self.clients, processors()),
            transactions=each,
            protocol="prepared",
            seed=seed,
            variables=relations(self.bed).variables,
        )

    def run(self, seed: int) -> pgbench.PgbenchResult:
        with self.around():
            return self._run(self.lasting(), seed)

    def throughput(self, block: Block) -> dict[str, float]:
        """What a variant measures that is nothing but this load."""
        return {"tps": self.run(block.seed).tps}

    def observe(self, block: Block) -> dict[str, float]:
        """Throughput, and where backends can be seen what they are switched for (`OBSERVED`).

        That is the messages of a transaction and a backend's context switches.
        """
        each = self.lasting()
        if not self.server.can("processes"):
            return self.throughput(block)
        with off_cpu.count_context_switches(self.server, self.clients) as counted:
            found = self.throughput(block)
        found["messages"] = messages(SQL.script(self.script), each)
        return found | {kind: switches / each for kind, switches in counted.items()}


def compare_loads(
    bed: Testbed,
    factors: Sequence[str],
    loads: Mapping[tuple[Any, ...], Load],
    many: int,
    measure: Callable[[Load, Block], dict[str, float]] = Load.throughput,
    **more: Any,
) -> Iterator[Row]:
    """Rows of loads by the values of these factors, in so many blocks; `more` as of `compare`."""
    yield from bed.compare(
        lambda block, **variant: measure(loads[tuple(variant.values())], block),
        [dict(zip(factors, values, strict=True)) for values in loads],
        pairs=many,
        warmup=0,
        positive=["tps", "lookups"],
        **more,
    )


def messages(script: str, transactions: float) -> float:
    """Messages that a backend waits for in each of so many transactions of its client.

    A statement is one, and one more to prepare it, and at last a goodbye.
    """
    sent = sum(line.endswith(";") for line in script.splitlines())
    return sent + (sent + 1) / transactions
