"""The thread's relations and scripts, and the arms in which they run: with HOT, without, and as in 2007.

HOT has no switch. What takes it away, or what came with it, without another cost:

- `NO_HOT`: a partial index on the updated column that no tuple ever enters. The column counts
  as indexed, so no update is heap-only; pruning stays, and so does everything else.
- `AS_BEFORE`: the same, while another session holds an old snapshot. No dead version may be
  pruned, as none was before HOT came. It suits short runs only: a tuple that is updated often
  has all its versions visited at every lookup, which in 2007 it had not.
- `INDEXED`: Merlin's B-tree on abalance. `BRIN`: the same column in an index that stores
  ranges of blocks, which since PostgreSQL 16 leaves HOT alone.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pandas as pd
import psycopg

from pgrerun import published, tables
from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import pgbench
from pgrerun.parameters import time_to_run
from pgrerun.relations import loading
from pgrerun.server import Server

PAGE = 8192  # bytes
COUNTS_NEWPAGE = 160_000  # the first server_version that counts updates to another page
TELLERS = 10  # of each branch, as in pgbench

HOT, NO_HOT, AS_BEFORE, INDEXED, BRIN = "HOT", "no HOT", "neither HOT nor pruning", "index on abalance", "BRIN on abalance"
ARMS = (HOT, BRIN, NO_HOT, INDEXED, AS_BEFORE)
_INDEX = {
    NO_HOT: "CREATE INDEX {0}_off ON {0} ({1}) WHERE {1} IS NULL",  # a balance never is
    AS_BEFORE: "CREATE INDEX {0}_off ON {0} ({1}) WHERE {1} IS NULL",
    INDEXED: "CREATE INDEX {0}_{1} ON {0} ({1})",
    BRIN: "CREATE INDEX {0}_{1} ON {0} USING brin ({1})",
}
REDUCED, FULL = "accounts and history only", "full TPC-B"
BALANCES = {"accounts": "abalance", "tellers": "tbalance", "branches": "bbalance"}
SIZED = ("accounts", "accounts_pkey", "tellers", "tellers_pkey", "branches", "branches_pkey")

# pgbench's columns; it leaves the fillers of the small relations null.
_TABLES = {
    "branches": ("bid int NOT NULL, bbalance int, filler char(88)", "bid", "SELECT n, 0, NULL"),
    "tellers": ("tid int NOT NULL, bid int, tbalance int, filler char(84)", "tid", f"SELECT n, (n - 1) / {TELLERS} + 1, 0, NULL"),
    "accounts": ("aid int NOT NULL, bid int, abalance int, filler char(84)", "aid", "SELECT n, (n - 1) / {accounts} + 1, 0, ''"),
}
_HISTORY = "CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))"

# delta is never 0: an update that changes nothing is heap-only whatever is indexed.
_DRAWN = r"""\set aid random(1, :accounts * :branches)
\set bid random(1, :branches)
\set tid random(1, :tellers * :branches)
\set delta random(1, 5000)
"""
_UPDATE_ACCOUNT = "UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
_INSERT = "INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
SCRIPTS = {
    REDUCED: f"{_DRAWN}BEGIN;\n{_UPDATE_ACCOUNT}{_INSERT}END;\n",
    FULL: f"{_DRAWN}BEGIN;\n{_UPDATE_ACCOUNT}SELECT abalance FROM accounts WHERE aid = :aid;\n"
    "UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
    f"UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n{_INSERT}END;\n",
}


@dataclass(frozen=True)
class Bank:
    """pgbench's relations with so many branches and accounts of each; keys counted from 1."""

    branches: int
    accounts: int

    @property
    def tuples(self) -> int:
        """Accounts of all branches."""
        return self.branches * self.accounts

    def load(self, server_or_connection: Server | psycopg.Connection, arm: str = HOT, fillfactor: int = 90) -> None:
        """Create the relations in the current schema with what `arm` needs, vacuumed and frozen.

        `fillfactor` is that of accounts alone, as in the thread. Autovacuum leaves them alone.
        """
        with loading.session(server_or_connection) as connection:
            with connection.transaction():
                for name, (columns, key, select) in _TABLES.items():
                    free = fillfactor if name == "accounts" else 100
                    options = f"(autovacuum_enabled = off, fillfactor = {free})"
                    loading.replace(connection, name, f"CREATE TABLE {name} ({columns}) WITH {options}")
                    select = select.format(accounts=self.accounts)
                    connection.execute(f"INSERT INTO {name} {select} FROM generate_series(1, {self._count(name)}) AS n")
                    connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({key})")
                    if arm in (NO_HOT, AS_BEFORE) or (arm in _INDEX and name == "accounts"):
                        connection.execute(_INDEX[arm].format(name, BALANCES[name]))
                loading.replace(connection, "history", f"{_HISTORY} WITH (autovacuum_enabled = off)")
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {', '.join((*_TABLES, 'history'))}")

    def _count(self, name: str) -> int:
        return {"branches": self.branches, "tellers": TELLERS * self.branches, "accounts": self.tuples}[name]

    @property
    def variables(self) -> dict[str, int]:
        """The -D variables of the scripts."""
        return {"branches": self.branches, "accounts": self.accounts, "tellers": TELLERS}

    def updates(self, per_account: float) -> int:
        """Transactions that update each account so often on average."""
        return round(per_account * self.tuples)


def bank(chapter: Chapter) -> Bank:
    """As many branches as clients, as in the thread, where both are ninety."""
    return Bank(chapter.parameters.clients, chapter.parameters.accounts)


@cache
def printed_updates() -> float:
    """Updates per account in the thread's runs."""
    setup = published.table("hot_setup")["value"]
    return setup["transactions"] / published.derived("hot_growth").at["reduced_accounts", "tuples"]


@contextmanager
def snapshot(server: Server, held: bool = True) -> Iterator[psycopg.Connection | None]:
    """A session that goes on seeing what was committed before (a snapshot of REPEATABLE READ), if `held`."""
    if not held:
        yield None
        return
    with server.connect(autocommit=False) as session:
        _look(session)
        yield session
        session.rollback()


def _look(session: psycopg.Connection) -> None:
    session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    session.execute("SELECT 1")


def vacuum(connection: psycopg.Connection, table: str, old: psycopg.Connection | None = None) -> None:
    """Vacuum a table; a session that holds an old snapshot lets go of it and takes a new one afterwards.

    So it was before HOT: nothing was pruned, but vacuum removed what was dead.
    """
    if old:
        old.rollback()
    connection.execute(f"VACUUM {table}")
    if old:
        _look(old)


def drive(
    server: Server, bank: Bank, script: str, transactions: int, *, seed: int, clients: int = 1, waiting: bool = True
) -> pgbench.PgbenchResult:
    """Run so many transactions of a script in all, shared out among the clients.

    With `waiting` off no commit waits for the log: for counting, not for timing.
    """
    ready = "" if waiting else "SET synchronous_commit = off;\n"
    return pgbench.run(
        server, ready + SCRIPTS[script], clients=clients, transactions=max(1, transactions // clients),
        variables=bank.variables, seed=seed, protocol="prepared",
    )  # fmt: skip


_INSIDE = """DO $$ DECLARE drawn_aid int; drawn_bid int; drawn_tid int; drawn_delta int; BEGIN FOR n IN 1..{transactions} LOOP
    drawn_aid := floor(random() * {accounts} * {branches})::int + 1; drawn_bid := floor(random() * {branches})::int + 1;
    drawn_tid := floor(random() * {tellers} * {branches})::int + 1; drawn_delta := floor(random() * 5000)::int + 1;
    {statements} COMMIT; END LOOP; END $$"""


def replay(connection: psycopg.Connection, bank: Bank, script: str, transactions: int, *, seed: int) -> None:
    """Run a script's statements so many times, a transaction each, without a client in between: for counting, not for timing."""
    lines = SCRIPTS[script].splitlines()
    statements = " ".join(lines[lines.index("BEGIN;") + 1 : lines.index("END;")])
    statements = re.sub(r":(\w+)", r"drawn_\1", statements).replace("SELECT abalance", "PERFORM abalance")
    _draw(connection, seed)
    connection.execute(_INSIDE.format(transactions=transactions, statements=statements, **bank.variables))


def _draw(connection: psycopg.Connection, seed: int) -> None:
    """Begin the session's random numbers anew; its commits don't wait for the log."""
    connection.execute("SET synchronous_commit = off")
    connection.execute("SELECT setseed(%s::float8 / 2147483648)", [seed])


def churn(connection: psycopg.Connection, bank: Bank, updates: int, *, seed: int, table: str = "accounts") -> None:
    """Update accounts drawn at random, each in a transaction of its own, without a client in between.

    For growing relations, not for timing.
    """
    _draw(connection, seed)
    connection.execute(
        f"DO $$ DECLARE drawn int; BEGIN FOR n IN 1..{updates} LOOP drawn := floor(random() * {bank.tuples})::int + 1;"
        f" UPDATE {table} SET abalance = abalance + 1 WHERE aid = drawn; COMMIT; END LOOP; END $$"
    )


def blocks(connection: psycopg.Connection, *relations: str) -> list[int]:
    """Sizes in pages (main fork)."""
    size = f"SELECT pg_relation_size(%s::text::regclass) / {PAGE}"
    return [connection.execute(size, [relation]).fetchone()[0] for relation in relations]


def require_newpage(connection: psycopg.Connection) -> None:
    """CannotMeasure where updates that go to another page aren't counted."""
    if connection.info.server_version < COUNTS_NEWPAGE:
        raise CannotMeasure("PostgreSQL 16", "before that release updates that go to another page aren't counted apart from others")


def counted(connection: psycopg.Connection, relation: str) -> dict[str, int]:
    """Updates of a table since it was made: updates, hot, newpage (None before PostgreSQL 16)."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    newpage = "pg_stat_get_tuples_newpage_updated(c)" if connection.info.server_version >= COUNTS_NEWPAGE else "NULL"
    columns = f"pg_stat_get_tuples_updated(c), pg_stat_get_tuples_hot_updated(c), {newpage}"
    row = connection.execute(f"SELECT {columns} FROM (SELECT %s::text::regclass AS c)", [relation]).fetchone()
    return dict(zip(("updates", "hot", "newpage"), row))


def apparatus(chapter: Chapter) -> tables.Table:
    """The thread's machine and load, and this run's."""
    then, now = published.table("hot_setup")["value"], chapter.run.environment["machine"]
    here, flush = bank(chapter), now["fdatasync_8k_seconds"]
    rows = [
        ("system", "CVS HEAD in March 2007, with and without the patch", f"PostgreSQL {chapter.run.environment['server']['version']}, HOT prevented or not"),
        ("processors", "not said", f"{now['cpus_usable']} ({now['cpu_model']})"),
        ("memory", f"{then['memory']:g} GB", f"{now['memory_bytes'] / 2**30:,.0f} GB"),
        ("disk", "not said", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        ("clients, and branches", f"{then['clients']:g}", f"{here.branches}"),
        ("accounts", f"{published.derived('hot_growth').at['reduced_accounts', 'tuples']:,.0f}", f"{here.tuples:,}"),
        ("accounts where throughput is timed", "the same", f"{here.branches * chapter.parameters.timed_accounts:,}"),
        ("updates per account", f"{printed_updates():g}", f"{printed_updates():g}; for the steady state up to {chapter.parameters.rounds}"),
        ("fillfactor of accounts", f"{then['fillfactor']:g} %", f"{then['fillfactor']:g} %"),
        ("time to run", "", time_to_run("hot")),
    ]  # fmt: skip
    return tables.table(pd.DataFrame(rows, columns=["", "2007", "this run"]), "Apparatus then and now")


def arms() -> pd.DataFrame:
    """What each arm does to HOT, for the page."""
    rows = [
        (HOT, "abalance is not indexed", "yes", "yes"),
        (BRIN, "a summarizing index on abalance", "since PostgreSQL 16", "yes"),
        (NO_HOT, "a partial index on the balance that no tuple enters", "no", "yes"),
        (INDEXED, "a B-tree on abalance", "no", "yes"),
        (AS_BEFORE, f"as “{NO_HOT}”, and another session holds an old snapshot", "no", "no"),
    ]
    return pd.DataFrame(rows, columns=["arm", "how", "HOT", "pruning"])
