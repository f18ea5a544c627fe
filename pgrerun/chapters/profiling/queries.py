"""The report's two query sets: Figures 2.1 and 2.3 as printed, and the SQL that `pgrerun.lab.quel`
makes of them. With them go the relations that they need.
"""

import random

import psycopg

from pgrerun.lab import statements
from pgrerun.lab.quel import figures
from pgrerun.lab.relations import DebitCredit, Wisconsin
from pgrerun.lab.server import Cluster, Server, exists
from pgrerun.lab.testbed import Testbed

SQL = statements.sql_folder(__file__)
SCANS, TRANSACTIONS = "scans", "transactions"
SETS = (SCANS, TRANSACTIONS)
WARM_UP = "warm-up"  # the group of statements that fill catalog caches and buffer pool
BATCH = 5  # transactions where whole sets are counted; instructions per transaction vary little
REPORT_TRANSACTIONS = 300  # section 2.2
# The report's branch, teller, account and history (section 2.2).
BANK = DebitCredit.report()

# Each command of Figure 2.1 as printed and in SQL.
FIGURE_2_1: tuple[tuple[str, str], ...] = tuple(figures.translated(figures.printed("2.1")))

# The same of a transaction; $1 is an account, $2 a teller, $3 a branch.
FIGURE_2_3: tuple[tuple[str, str], ...] = tuple(figures.translated(figures.printed("2.3")))

# The last two commands change a tuple for good; a second run would find nothing to replace.
UNDO = tuple(
    f"UPDATE {relation} SET unique2 = 1491 WHERE unique2 = 10011" for relation in ("tenk1", "tenk2")
)
# What the two sets append to, change, or note in the catalogs.
_CHANGED: tuple[str, ...] = ("tenk1", "tenk2", "branch", "teller", "account", "history")
_CHANGED += ("pg_attribute", "pg_class", "pg_type", "pg_depend")


def scans() -> list[str]:
    """Figure 2.1's commands in SQL, in their order."""
    return [sql for _, sql in FIGURE_2_1]


def warm_up() -> list[str]:
    """One command of each kind on the small relation, and a look at the large ones: they fill the
    catalog caches.
    """
    kinds: dict[tuple[str, bool], str] = {}
    for said, sql in FIGURE_2_1:
        kinds.setdefault((said.split()[0], " into " in said), sql)
    small = [sql.replace("tenk1", "onek").replace("1491", "491") for sql in kinds.values()]
    undo = "UPDATE onek SET unique2 = 491 WHERE unique2 = 10011"
    return [*small, undo, *(f"SELECT unique1 FROM {name} LIMIT 1" for name in ("tenk1", "tenk2"))]


def drawn_transactions(count: int, seed: int, bank: DebitCredit = BANK) -> list[list[str]]:
    """Figure 2.3's commands, a list for each of so many transactions, keys drawn independently."""
    draws = random.Random(seed)
    found = []
    for _ in range(count):
        keys = tuple(
            draws.randint(1, most) for most in (bank.accounts, bank.tellers, bank.branches)
        )
        found.append([sql for _, sql in figures.translated(figures.printed("2.3"), keys)])
    return found


def transactions(bed: Testbed, count: int, seed: int = 0) -> list[str]:
    """The commands of `count` of Figure 2.3's transactions, one after the other."""
    return sum(drawn_transactions(count, bed.parameters.seed + seed), [])


def groups(bed: Testbed, count: int, *sets: str) -> dict[str, list[str]]:
    """Statements of query sets, so many transactions, with a warm-up before them: catalog caches
    are filled, and the buffer pool, which is empty when a single-user backend begins.
    """
    first = {SCANS: warm_up(), TRANSACTIONS: transactions(bed, 3, seed=1)}
    work = {SCANS: scans(), TRANSACTIONS: transactions(bed, count)}
    warm = [command for each in sets for command in first[each]]
    warm.append(SQL.line("relations.prewarm"))
    return {WARM_UP: warm} | {each: work[each] for each in sets}


def load(bed: Testbed, server: Server) -> None:
    """Load onek, tenk1 and tenk2 (no index) and the relations of the transactions."""
    scale = bed.parameters.scale
    for name, tuples, order in (("onek", 1_000, 1), ("tenk1", 10_000, 1), ("tenk2", 10_000, 2)):
        Wisconsin(name, tuples * scale, attributes="1990", order=order).load(server)
    BANK.load(server)


def load_once(bed: Testbed, server: Server) -> None:
    """Load the relations unless the server has them."""
    with server.connect() as connection:
        loaded = exists(connection, "tenk1")
    if not loaded:
        load(bed, server)


def loaded_cluster(bed: Testbed) -> Cluster:
    """A cluster that holds both sets' relations; the buffer pool keeps all of them.

    CannotMeasure for a borrowed server, which can't be run under callgrind.
    """
    cluster = bed.cluster(shared_buffers="64MB", min_wal_size="32MB", cluster_name="profiled")
    cluster.extension("pg_prewarm")
    load_once(bed, cluster)
    return cluster


def vacuum(connection: psycopg.Connection) -> None:
    """Remove the versions that earlier runs of the two sets left behind."""
    for relation in _CHANGED:
        connection.execute(f"VACUUM {relation}")
