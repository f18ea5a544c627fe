"""What all experiments share: the servers under test, pgbench's relations on them, and loads."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.lab import statements
from pgrerun.lab.disk import Slowed
from pgrerun.lab.experiment import Block
from pgrerun.lab.instruments import pgbench, switches, waits
from pgrerun.lab.relations.pgbench import BRANCHES, TELLERS, Pgbench
from pgrerun.lab.server import Cluster, Server, releases

# ---- servers

SLOTS = 1024  # locks on the fast path of each backend (PostgreSQL 18; sixteen before)
ACCOUNTS = 100_000  # of pgbench, per unit of scale
SMALL_POOL = "2MB"


def processors() -> int:
    """Processors that server and clients may use together."""
    return len(os.sched_getaffinity(0))


def connections(chapter: Chapter) -> int:
    """Connections that the throwaway servers allow."""
    given = chapter.parameters
    return max(given.most_clients, given.commit_clients) + 4 * processors() + 20


def server(chapter: Chapter) -> Server:
    """The server under test: the reader's own, or a throwaway one.

    The throwaway one has room for all clients, and on the fast path for the locks of many
    partitions.
    """
    if chapter.borrowed:
        return chapter.server
    return chapter.cluster(max_connections=connections(chapter), max_locks_per_transaction=SLOTS)


def second_server(chapter: Chapter, disk: Slowed | None = None, **settings: str | int) -> Cluster:
    """A second throwaway server, running, that differs from `server` in these settings alone.

    On the machine's own disk, or on another that can be slowed.

    There is one: it is restarted when it is asked for with other settings, or was stopped, which
    takes less than making another. CannotMeasure for settings that the release doesn't know.
    """
    releases.require_settings(server(chapter).version, settings)
    second = chapter.cluster(
        max_connections=connections(chapter),
        max_locks_per_transaction=SLOTS,
        cluster_name="restarted for each experiment",
    )
    wanted = server(chapter).settings | {"cluster_name": second.settings["cluster_name"]}
    wanted |= {name: str(value) for name, value in settings.items()}
    if second.settings != wanted or second.disk is not disk or not second.pids():
        second.settings, second.disk = wanted, disk
        second.restart()
    return second


def require_own(chapter: Chapter) -> None:
    """Raise CannotMeasure if the server under test is somebody else's."""
    if chapter.borrowed:
        chapter.cluster()  # says why not


def relations(chapter: Chapter) -> Pgbench:
    """pgbench's relations, about `scale` times 100 000 accounts.

    There is a branch for each connection, so that writers seldom meet on one, as pgbench's manual
    asks for.
    """
    branches = connections(chapter)
    accounts = round(chapter.parameters.scale * ACCOUNTS / branches)
    return Pgbench(branches, accounts_per_branch=accounts, prefix="scaling_")


def loaded(chapter: Chapter, tested: Server | None = None) -> Server:
    """A server (default: the one under test) with `relations`, loaded unless it has them.

    Branches and tellers have room for updates.
    """
    tested, wanted = tested or server(chapter), relations(chapter)
    if not wanted.is_loaded(tested):
        wanted.load(tested, fillfactor={BRANCHES: 20, TELLERS: 20})
    return tested


# ---- loads

SQL = statements.beside(__file__)
LOOKUP, TPCB = SQL.script("lookup"), SQL.script("tpcb")
CROWD = 4 * processors()  # clients, where many are wanted on few processors
LEAST = 20  # transactions of each client, so that no load is over before all are at work
THROUGHPUT = {"throughput": "transactions/s"}
OBSERVED = THROUGHPUT | {"messages": "per transaction"} | switches.PER_TRANSACTION


def by_clients(number: int) -> str:
    """A variant's name by its clients."""
    return f"{number} client{'s' if number > 1 else ''}"


def client_counts(chapter: Chapter) -> list[int]:
    """Numbers of clients of the sweep over lookups.

    They double up to one client per processor, then go in larger steps up to `most_clients`;
    `one_per_processor` is among them.
    """
    most, counts = _allowed(chapter), [1]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] * (2 if counts[-1] < processors() else 4)))
    return sorted({*counts, min(processors(), most)})


def one_per_processor(chapter: Chapter) -> int:
    """As many clients as processors, or as many of them as there may be."""
    return min(processors(), client_counts(chapter)[-1])


def _allowed(chapter: Chapter) -> int:
    """`most_clients`, or as many of them as somebody's server has room for."""
    most = chapter.parameters.most_clients
    if not chapter.borrowed:
        return most
    with chapter.server.connect() as connection:
        query = (
            "SELECT current_setting('max_connections')::int - 10 - (SELECT count(*) FROM"
            " pg_stat_activity WHERE backend_type = 'client backend')"
        )
        return max(2, min(most, connection.execute(query).fetchone()[0]))


@dataclass(frozen=True)
class Load:
    """So many clients that run a script, prepared; pgbench has a thread per processor.

    Each client runs `each` transactions, `LEAST` at least: equal work, however many there are.
    `around` makes a context for each run.
    """

    chapter: Chapter
    server: Server
    script: str
    clients: int
    each: float
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def run(self, seed: int) -> pgbench.PgbenchResult:
        """Run it once."""
        with self.around():
            return pgbench.run(
                self.server,
                self.script,
                clients=self.clients,
                jobs=min(self.clients, processors()),
                transactions=max(LEAST, round(self.each)),
                protocol="prepared",
                seed=seed,
                variables=relations(self.chapter).variables,
            )

    def throughput(self, block: Block) -> dict[str, float]:
        """What a variant measures that is nothing but this load."""
        return {"throughput": self.run(block.seed).tps}

    def observe(self, block: Block) -> dict[str, float]:
        """Throughput, and where backends can be seen what they are switched for (`OBSERVED`).

        That is the messages of a transaction and a backend's context switches.
        """
        if not self.server.can("processes"):
            return self.throughput(block)
        with switches.counted(self.server, self.clients) as counted:
            done = self.run(block.seed)
        each = done.transactions / self.clients
        observed = {"throughput": done.tps, "messages": messages(self.script, each)}
        return observed | counted.per_transaction(each)


def messages(script: str, transactions: float) -> float:
    """Messages that a backend waits for in each of so many transactions of its client.

    A statement is one, and one more to prepare it, and at last a goodbye.
    """
    sent = sum(line.endswith(";") for line in script.splitlines())
    return sent + (sent + 1) / transactions


def waits_of(loads: Mapping[Any, Load], column: str, every: float = 0.005) -> pd.DataFrame:
    """What active backends wait for in each load, in a run that isn't timed.

    They are asked every so many seconds. Columns: `column` (the load's name), type, event, backends
    (on average).
    """
    frames = []
    for name, load in loads.items():
        with waits.sampled(load.server, every) as sampled:
            load.run(load.chapter.parameters.seed)
        frames.append(sampled.seen().assign(**{column: name}))
    return pd.concat(frames, ignore_index=True)
