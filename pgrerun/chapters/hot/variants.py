"""The thread's relations and scripts, and the variants in which they run.

HOT has no switch, but an index on the updated column takes it away (`sql/variants.sql`), and an
old snapshot takes away pruning, which came with it. `UNPRUNED` does both, as it was before 2007. It
suits short runs only: of a tuple that is updated often every lookup visits all versions.
"""

import time
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.lab import statements
from pgrerun.lab.instruments import pgbench, server_load
from pgrerun.lab.relations import loading
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Server
from pgrerun.page import tables
from pgrerun.parameters import time_to_run
from pgrerun.record import printed

SQL = statements.beside(__file__)


@dataclass(frozen=True)
class Variant:
    """A way to run the thread's load; what it leaves of HOT and of pruning, in words.

    ddl           the section of sql/variants.sql that is run after loading ("" for none)
    old_snapshot  whether another session's snapshot is held from then on
    """

    ddl: str
    old_snapshot: bool
    how: str
    hot: str
    pruning: str


HOT, BRIN, NO_HOT, INDEXED, UNPRUNED = (
    "HOT",
    "BRIN on abalance",
    "no HOT",
    "index on abalance",
    "neither HOT nor pruning",
)
VARIANTS = {
    HOT: Variant("", False, "abalance is not indexed", "yes", "yes"),
    BRIN: Variant(
        "variants.brin_on_abalance",
        False,
        "a summarizing index on abalance",
        "since PostgreSQL 16",
        "yes",
    ),
    NO_HOT: Variant(
        "variants.no_hot",
        False,
        "a partial index on the balance that no tuple enters",
        "no",
        "yes",
    ),
    INDEXED: Variant(
        "variants.index_on_abalance",
        False,
        f"a B-tree on abalance; tellers and branches as in “{NO_HOT}”",
        "no",
        "yes",
    ),
    UNPRUNED: Variant(
        "variants.no_hot",
        True,
        f"as “{NO_HOT}”, and another session holds an old snapshot",
        "no",
        "no",
    ),
}
REDUCED, FULL = "accounts and history only", "full TPC-B"
SCRIPTS = {REDUCED: "reduced", FULL: "full"}
# clients where the reduced script is timed: each needs pages of the pool, more would but queue
PAVANS = 4
ACCOUNTS = ("accounts", "accounts_pkey")
FILLFACTOR = int(printed.cell("hot_setup", "fillfactor", "value"))
SCALE_FACTOR = printed.cell("hot_setup", "autovacuum_scale_factor", "value")
# Updates per account in the thread's runs.
UPDATES = (
    printed.cell("hot_setup", "transactions", "value")
    / printed.derived("hot_growth").at["reduced_accounts", "tuples"]
)


def relations(chapter: Chapter) -> Pgbench:
    """As many branches as clients, as in the thread, where both are ninety."""
    return Pgbench(chapter.parameters.clients, chapter.parameters.accounts, prefix="")


def timed(chapter: Chapter, clients: int) -> Pgbench:
    """The same for so many clients, of the size on which throughput is timed."""
    return Pgbench(clients, chapter.parameters.timed_accounts, prefix="")


def load(
    relations: Pgbench,
    server_or_connection: Server | psycopg.Connection,
    variant: str = HOT,
    fillfactor: int = FILLFACTOR,
) -> None:
    """Load the relations and a variant's indexes; the fillfactor is that of accounts alone."""
    with loading.session(server_or_connection) as connection:
        relations.load(connection, fillfactor={"accounts": fillfactor})
        if ddl := VARIANTS[variant].ddl:
            SQL.run(connection, ddl)


def create(
    connection: psycopg.Connection,
    table: str,
    name: str,
    frozen: bool = True,
    **values: statements.Value,
) -> None:
    """Run the statements called `name`, of which the first creates `table`; then freeze it."""
    first, *others = SQL.each(name, **values)
    with connection.transaction():
        loading.replace(connection, table, first)
        for statement in others:
            connection.execute(statement)
    if frozen:
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")


def updates(relations: Pgbench, per_account: float = UPDATES) -> int:
    """Transactions that update each account so often on average."""
    return round(per_account * relations.accounts)


def run_pgbench(
    server: Server,
    relations: Pgbench,
    script: str,
    transactions: int,
    *,
    seed: int,
    clients: int = 1,
) -> pgbench.PgbenchResult:
    """Run so many transactions of a script in all, shared out among the clients.

    Returns when the clients' backends have left: they report what they counted as they do.
    """
    done = pgbench.run(
        server,
        SQL.script(script),
        clients=clients,
        transactions=max(1, transactions // clients),
        variables=relations.variables,
        seed=seed,
        protocol="prepared",
    )
    with server.connect() as connection:
        while SQL.run(connection, "variants.clients").fetchone()[0]:
            time.sleep(0.002)
    return done


def run_in_server(
    connection: psycopg.Connection,
    relations: Pgbench,
    script: str,
    transactions: int,
    seed: int,
    **variables: int,
) -> None:
    """Run so many transactions of a script without a client: for counting, not timing."""
    server_load.run(
        connection,
        SQL.script(script),
        transactions,
        variables=relations.variables | variables,
        seed=seed,
    )


def vacuum(
    connection: psycopg.Connection, table: str, old: psycopg.Connection | None = None
) -> None:
    """Vacuum a table; a session with an old snapshot gives it up and takes a new one afterwards.

    So it was before HOT: nothing was pruned, but vacuum removed what was dead.
    """
    if old:
        old.rollback()
    connection.execute(f"VACUUM {table}")
    if old:
        old.execute("SELECT 1")


def variants_table() -> tables.Table:
    """What each variant does to HOT and to pruning."""
    rows = [(name, v.how, v.hot, v.pruning) for name, v in VARIANTS.items()]
    frame = pd.DataFrame(rows, columns=["variant", "how", "HOT", "pruning"])
    return tables.table(frame, "The variants, and what each leaves of HOT and of pruning")


def apparatus(chapter: Chapter) -> tables.Table:
    """The thread's machine and load, and this run's."""
    then, now = printed.table("hot_setup")["value"], chapter.run.environment["machine"]
    ours, flush = relations(chapter), now["fdatasync_8k_seconds"]
    disk = f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"
    accounts = printed.derived("hot_growth").at["reduced_accounts", "tuples"]
    rows = [
        (
            "system",
            "CVS HEAD in March 2007, with and without the patch",
            f"PostgreSQL {chapter.run.environment['server']['version']}, HOT prevented or not",
        ),
        ("processors", "not said", f"{now['cpus_usable']} ({now['cpu_model']})"),
        ("memory", f"{then['memory']:g} GB", f"{now['memory_bytes'] / 2**30:,.0f} GB"),
        ("disk", "not said", disk),
        ("clients, and branches", f"{then['clients']:g}", f"{ours.branches}"),
        (
            "clients, and branches, where the reduced script is timed",
            "the same",
            f"{PAVANS}",
        ),
        ("accounts", f"{accounts:,.0f}", f"{ours.accounts:,}"),
        (
            "accounts where throughput is timed",
            "the same",
            f"{chapter.parameters.timed_accounts:,} of each branch",
        ),
        (
            "transactions of each client there",
            f"{then['transactions_per_client']:,.0f}",
            f"{round(UPDATES * chapter.parameters.timed_accounts):,}",
        ),
        (
            "updates per account",
            f"{UPDATES:g}",
            f"{UPDATES:g}; for the steady state up to {chapter.parameters.rounds}",
        ),
        ("fillfactor of accounts", f"{FILLFACTOR} %", f"{FILLFACTOR} %"),
        ("time to run", "", time_to_run("hot")),
    ]
    frame = pd.DataFrame(rows, columns=["", "2007", "this run"])
    return tables.table(frame, "Apparatus then and now")
