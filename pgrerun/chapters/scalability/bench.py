"""The servers of this chapter, its relations, and its loads."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd

from pgrerun import published, tables
from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.instruments import pgbench, switches
from pgrerun.parameters import time_to_run
from pgrerun.relations import loading
from pgrerun.server import Cluster, Server

SLOTS = 1024  # locks on the fast path of each backend (PostgreSQL 18; sixteen before)
ACCOUNTS = 100_000  # of pgbench, per unit of scale
LOOKUP = "\\set aid random(1, :accounts)\nSELECT abalance FROM scaling_accounts WHERE aid = :aid;\n"
TALK_CLIENTS = int(published.cell("scalability_write", "commit_clients", "value"))


def processors() -> int:
    """Processors that server and clients may use together."""
    return len(os.sched_getaffinity(0))


def server(chapter: Chapter) -> Server:
    """The server under test: the reader's own, or a throwaway one with room for all clients and their locks."""
    if chapter.borrowed:
        return chapter.server
    # so many relation locks find room on the fast path; with fewer, many partitions would need the lock table
    return chapter.cluster(max_connections=connections(chapter), max_locks_per_transaction=SLOTS)


def second(chapter: Chapter, **settings: str | int) -> Cluster:
    """A second throwaway server, running, that differs from `server` in these settings alone.

    There is one: it is restarted when it is asked for with other settings, or was stopped, which takes less than making another.
    """
    on = chapter.cluster(max_connections=connections(chapter), max_locks_per_transaction=SLOTS, cluster_name="restarted for each experiment")
    wanted = server(chapter).settings | {"cluster_name": on.settings["cluster_name"]} | {name: str(value) for name, value in settings.items()}
    if on.settings != wanted or not on.pids():
        on.settings = wanted
        on.restart()
    return on


@contextmanager
def sessions(on: Server, **settings: str | int) -> Iterator[None]:
    """Sessions that begin while the block runs have these settings; CannotMeasure on a server that isn't ours.

    pgbench begins its sessions for each load, and the server's other processes needn't read their configuration again.
    """
    if not on.owned:
        raise CannotMeasure("restart", f"it needs a server whose settings may be changed, and {on.name} is not ours")
    with on.connect() as connection:
        for name, value in settings.items():
            connection.execute(f"ALTER ROLE CURRENT_USER SET {name} = '{value}'")
        try:
            yield
        finally:
            for name in settings:
                connection.execute(f"ALTER ROLE CURRENT_USER RESET {name}")


def connections(chapter: Chapter) -> int:
    """Connections that the throwaway servers allow: the idle ones leave room for those at work."""
    given = chapter.parameters
    return max(given.most_clients, given.commit_clients, given.idle_connections) + 4 * processors() + 20


def levels(chapter: Chapter) -> list[int]:
    """Numbers of clients: doubling up to one per processor, then in larger steps up to `most_clients`; `busy` is among them."""
    most, found = _allowed(chapter), [1]
    while found[-1] < most:
        found.append(min(most, found[-1] * (2 if found[-1] < processors() else 4)))
    return sorted({*found, min(processors(), most)})


def busy(chapter: Chapter) -> int:
    """As many clients as processors, or as many of them as there may be."""
    return min(processors(), levels(chapter)[-1])


def _allowed(chapter: Chapter) -> int:
    """`most_clients`, or as many of them as somebody's server has room for."""
    most = chapter.parameters.most_clients
    if not chapter.borrowed:
        return most
    with chapter.server.connect() as connection:
        query = "SELECT current_setting('max_connections')::int - 10 - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
        return max(2, min(most, connection.execute(query).fetchone()[0]))


def accounts(chapter: Chapter) -> int:
    """Accounts in the relation that is read."""
    return chapter.parameters.scale * ACCOUNTS


def load(chapter: Chapter, on: Server) -> None:
    """Make `scaling_accounts` (like pgbench_accounts, with its primary key) and the empty `scaling_inserts`; idempotent."""
    with on.connect() as connection:
        if connection.execute("SELECT to_regclass('scaling_accounts')").fetchone()[0]:
            return
        with connection.transaction():
            loading.replace(connection, "scaling_accounts", "CREATE TABLE scaling_accounts (aid int NOT NULL, bid int, abalance int, filler char(84))")
            connection.execute(
                "INSERT INTO scaling_accounts SELECT aid, 1 + (aid - 1) / 100000, 0, '' FROM generate_series(1, %s) AS aid", [accounts(chapter)]
            )
            connection.execute("ALTER TABLE scaling_accounts ADD PRIMARY KEY (aid)")
            loading.replace(connection, "scaling_inserts", "CREATE TABLE scaling_inserts (id int, words text)")
        connection.execute("VACUUM (FREEZE, ANALYZE) scaling_accounts")


def drive(chapter: Chapter, on: Server, script: str, clients: int, transactions: int, seed: int, **variables: int) -> pgbench.PgbenchResult:
    """Drive a script by so many clients, `transactions` of them all together, prepared; pgbench has a thread per processor."""
    return pgbench.run(
        on, script, clients=clients, jobs=min(clients, processors()), transactions=max(1, round(transactions / clients)),
        protocol="prepared", seed=seed, variables={"accounts": accounts(chapter)} | variables,
    )  # fmt: skip


WATCHED = {"throughput": "transactions/s", "messages": "per transaction"} | switches.PER_TRANSACTION  # units


def watched(chapter: Chapter, on: Server, script: str, clients: int, transactions: int, seed: int, **variables: int) -> dict[str, float]:
    """Throughput of a load, the messages of a transaction, and its backend's context switches where they can be seen."""
    if not on.can("processes"):
        return {"throughput": drive(chapter, on, script, clients, transactions, seed, **variables).tps}
    with switches.counted(on, clients) as found:
        done = drive(chapter, on, script, clients, transactions, seed, **variables)
    each = done.transactions / clients
    return {"throughput": done.tps, "messages": messages(script, each)} | found.per_transaction(each)


def messages(script: str, transactions: float) -> float:
    """Messages that a backend waits for in each of so many transactions: a statement is one, and one more to prepare it, and at last a goodbye."""
    statements = sum(line.endswith(";") for line in script.splitlines())
    return statements + (statements + 1) / transactions


@contextmanager
def idling(on: Server, number: int) -> Iterator[None]:
    """So many connections are there and do nothing while this block runs; pgbench opens them faster than Python."""
    counted = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'idle' AND query = ''"
    with on.tool_process("pgbench", "-n", "-c", number, "-f", "-", stdin=subprocess.PIPE) as process:
        try:
            process.stdin.write("\\sleep 1000 s\n")
            process.stdin.close()
            with on.connect() as watch:
                while watch.execute(counted).fetchone()[0] < number:
                    if process.poll() is not None:
                        raise ServerError(f"pgbench couldn't open {number} connections: {process.stderr.read().strip()[-300:]}")
                    time.sleep(0.01)
            yield
        finally:
            process.kill()


def apparatus(chapter: Chapter) -> tables.Table:
    """The talk's machines and this one."""
    read, write, now = published.table("scalability_read").value, published.table("scalability_write").value, chapter.run.environment["machine"]
    flush = now["fdatasync_8k_seconds"]
    rows = [
        ("system", "PostgreSQL 9.1 and 9.2", f"PostgreSQL {chapter.run.environment['server']['version']}"),
        ("processors", f"{read['cores']:g} (AMD Opteron 6128); {read['cores_large']:g}; {write['commit_cores']:g} with {write['commit_threads']:g} threads", f"{now['cpus_usable']} ({now['cpu_model']}); more by simulation"),
        ("disk", "a slow one, without a write cache", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        ("load", "pgbench, primary key lookups; pgbench; single inserts", "the same"),
        ("runs", "three, of five minutes (reads) or thirty (writes)", f"{chapter.parameters.pairs} interleaved, of {chapter.parameters.transactions:,} transactions"),
        ("time to run", "", time_to_run("scalability")),
    ]  # fmt: skip
    return tables.table(pd.DataFrame(rows, columns=["", "2012", "this run"]), "Apparatus then and now")
