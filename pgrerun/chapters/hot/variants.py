"""The thread's relations and scripts, and the variants in which they run.

HOT has no switch, but an index on the updated column takes it away (`sql/variants.sql`), and an
old snapshot takes away pruning, which came with it. `UNPRUNED` does both, as it was before HOT. It
suits short runs only: of a tuple that is updated often every lookup visits all versions.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pgrerun.lab import statements
from pgrerun.lab.instruments import pgbench, server_load, sessions
from pgrerun.lab.relations import Pgbench, loading
from pgrerun.lab.server import Server, releases
from pgrerun.lab.testbed import Testbed
from pgrerun.record import printed

SQL = statements.sql_folder(__file__)

HOT, BRIN, NO_HOT, INDEXED, UNPRUNED = (
    "HOT",
    "BRIN on abalance",
    "no HOT",
    "index on abalance",
    "neither HOT nor pruning",
)
# The section of the chapter's SQL that is run after loading a variant; "" for none. While the last
# one runs, another session holds an old snapshot.
INDEXES = {
    HOT: "",
    BRIN: "variants.brin_on_abalance",
    NO_HOT: "variants.no_hot",
    INDEXED: "variants.index_on_abalance",
    UNPRUNED: "variants.no_hot",
}

REDUCED, FULL = "reduced", "full"  # the scripts, sql/*.pgbench
ACCOUNTS = ("accounts", "accounts_pkey")
SMALL_TABLES = ("tellers", "tellers_pkey", "branches", "branches_pkey")
FILLFACTOR = int(printed.cell("hot_setup", "fillfactor", "value"))
SCALE_FACTOR = printed.cell("hot_setup", "autovacuum_scale_factor", "value")
# Updates per account in the thread's runs.
UPDATES = (
    printed.cell("hot_setup", "transactions", "value")
    / printed.derived("hot_growth").at["reduced_accounts", "tuples"]
)


def relations(bed: Testbed) -> Pgbench:
    """As many branches as clients, as in the thread, where both are ninety."""
    return Pgbench(bed.parameters.clients, bed.parameters.accounts, prefix="")


def load(
    relations: Pgbench,
    server_or_connection: Server | psycopg.Connection,
    variant: str = HOT,
    fillfactor: int = FILLFACTOR,
) -> None:
    """Load the relations and a variant's indexes; the fillfactor is that of accounts alone."""
    with loading.session(server_or_connection) as connection:
        relations.load(connection, fillfactor={"accounts": fillfactor})
        if ddl := INDEXES[variant]:
            SQL.run(connection, ddl)


@contextmanager
def loaded(
    relations: Pgbench, server: Server, variant: str, held: bool = False
) -> Iterator[tuple[psycopg.Connection, psycopg.Connection | None]]:
    """A connection to a server on which a variant is loaded, and the session with an old snapshot.

    There is such a session if the variant has one, or if it is to be `held` anyway.
    """
    load(relations, server, variant)
    with (
        server.connect() as connection,
        sessions.snapshot(server, held or variant == UNPRUNED) as old,
    ):
        yield connection, old


def create(
    connection: psycopg.Connection,
    table: str,
    name: str,
    frozen: bool = True,
    **values: statements.Value,
) -> None:
    """Run the statements called `name`, of which the first creates `table`; then freeze it."""
    loading.make(connection, table, *SQL.each(name, **values))
    if frozen:
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")


def updates(relations: Pgbench, per_account: float = UPDATES) -> int:
    """Transactions that update each account so often on average."""
    return round(per_account * relations.accounts)


def run_script(
    server: Server,
    relations: Pgbench,
    script: str,
    transactions: int,
    *,
    seed: int,
    clients: int = 1,
) -> pgbench.PgbenchResult:
    """Run so many transactions of a script in all, prepared, shared out among the clients."""
    return pgbench.run(
        server,
        SQL.script(script),
        clients=clients,
        transactions=max(1, transactions // clients),
        variables=relations.variables,
        seed=seed,
        protocol="prepared",
    )


def run_pgbench(
    server: Server,
    relations: Pgbench,
    script: str,
    transactions: int,
    *,
    seed: int,
    clients: int = 1,
) -> pgbench.PgbenchResult:
    """The same, and return when the clients' backends have left.

    They report what they counted as they do. Which are the clients' a server tells from 9.0 on;
    whoever counts on an older one waits for its collector anyway (`counters.force_flush`).
    """
    done = run_script(server, relations, script, transactions, seed=seed, clients=clients)
    if not releases.has(server.version, "application_name"):
        return done
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
