"""The report's relations, and the steps of its ladder as PostgreSQL can still take them."""

from dataclasses import dataclass, field

from pgrerun.lab import statements
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.relations.debit_credit import DebitCredit
from pgrerun.lab.server import Cluster, Server
from pgrerun.lab.testbed import Testbed

SQL = statements.sql_folder(__file__)

POOL_1990 = 16  # pages of 8 kB: the report's default, and PostgreSQL's smallest pool today
POOL_ENLARGED = 48
POOL_TODAY = 16384  # PostgreSQL's default of 128 MB
REPORT_BATCH = 300  # transactions that the report profiled together, section 2.2
RELATIONS = ("branch", "teller", "account", "history")
INDEXES = ("branch_index", "teller_index", "account_index")
TRANSACTION, FLUSHING, PROBING = "transaction", "flushing", "probing"  # scripts in sql/


@dataclass(frozen=True)
class Rung:
    """One step of the report's ladder and how it is taken today.

    stage     the row of data/printed/tp1_stages.csv beside it (None where none has a throughput)
    buffers   pages of the buffer pool
    script    of sql/*.pgbench, without its ending
    backends  0: as many as the parameter `clients` says
    settings  of the backends' sessions
    """

    stage: str | None
    buffers: int
    script: str
    backends: int = 0
    settings: dict[str, str] = field(default_factory=dict)


ALONE = "one backend"
TOGETHER = "several backends"
AGAIN = "several backends, again"
ENLARGED = "48 pages"
APPEND = "no probing for space"
LOGGED = "log at commit"
STABLE = "stable memory"
SMALL = "16 pages, log at commit"
LONE = "log at commit, one backend"
PAIR = "log at commit, two backends"
RUNGS = {
    ALONE: Rung("one", POOL_1990, PROBING, backends=1),
    TOGETHER: Rung("two", POOL_1990, PROBING),
    AGAIN: Rung(None, POOL_1990, PROBING),
    ENLARGED: Rung("pool", POOL_ENLARGED, PROBING),
    APPEND: Rung("append", POOL_ENLARGED, FLUSHING),
    LOGGED: Rung(None, POOL_ENLARGED, TRANSACTION),
    STABLE: Rung("stable", POOL_ENLARGED, TRANSACTION, settings={"synchronous_commit": "off"}),
    SMALL: Rung(None, POOL_1990, TRANSACTION, backends=1),
    # as many pages as both need, so that the second reads no more than the first, as in the report
    LONE: Rung(None, POOL_ENLARGED, TRANSACTION, backends=1),
    PAIR: Rung(None, POOL_ENLARGED, TRANSACTION, backends=2),
}


def relations(bed: Testbed) -> DebitCredit:
    """The report's relations (Figure 2.2) at the chapter's scale."""
    return DebitCredit.report(bed.parameters.scale)


def run(server: Server, bank: DebitCredit, transactions: int, seed: int) -> pgbench.PgbenchResult:
    """Run so many transactions, one after the other."""
    return pgbench.run(
        server,
        SQL.script(TRANSACTION),
        transactions=transactions,
        variables=bank.variables(server),
        seed=seed,
    )


def pooled(bed: Testbed, buffers: int) -> Cluster:
    """A cluster whose pool has so many pages; without a background writer, as 1990 had none."""
    return bed.cluster(
        shared_buffers=f"{buffers * 8}kB", bgwriter_lru_maxpages=0, track_io_timing="on"
    )


def backends_of(bed: Testbed, rung: Rung) -> int:
    """As many as the rung says, or as the parameter."""
    return rung.backends or int(bed.parameters.clients)
