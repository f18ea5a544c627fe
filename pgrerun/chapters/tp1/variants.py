"""The report's relations, and the steps of its ladder as PostgreSQL can still take them."""

from dataclasses import dataclass, field

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.lab import statements
from pgrerun.lab.relations.debit_credit import DebitCredit
from pgrerun.lab.server import Cluster, value
from pgrerun.page import tables
from pgrerun.parameters import time_to_run
from pgrerun.record import printed

SQL = statements.beside(__file__)

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

    stage     the row of data/printed/tp1_stages.csv beside it ("" where none has a throughput)
    buffers   pages of the buffer pool
    script    of sql/*.pgbench, without its ending
    backends  0: as many as the parameter `clients` says
    settings  of the backends' sessions
    """

    stage: str
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
LONE = "16 pages, log at commit"
PAIR = "16 pages, log at commit, several backends"
RUNGS = {
    ALONE: Rung("one", POOL_1990, PROBING, backends=1),
    TOGETHER: Rung("two", POOL_1990, PROBING),
    AGAIN: Rung("", POOL_1990, PROBING),
    ENLARGED: Rung("pool", POOL_ENLARGED, PROBING),
    APPEND: Rung("append", POOL_ENLARGED, FLUSHING),
    LOGGED: Rung("", POOL_ENLARGED, TRANSACTION),
    STABLE: Rung("stable", POOL_ENLARGED, TRANSACTION, settings={"synchronous_commit": "off"}),
    LONE: Rung("", POOL_1990, TRANSACTION, backends=1),
    PAIR: Rung("", POOL_1990, TRANSACTION),
}


def relations(chapter: Chapter) -> DebitCredit:
    """The report's relations (Figure 2.2) at the chapter's scale."""
    return DebitCredit.report(chapter.parameters.scale)


def pooled(chapter: Chapter, buffers: int) -> Cluster:
    """A cluster whose pool has so many pages; without a background writer, as 1990 had none."""
    return chapter.cluster(
        shared_buffers=f"{buffers * 8}kB", bgwriter_lru_maxpages=0, track_io_timing="on"
    )


def rungs(chapter: Chapter) -> tables.Table:
    """What is different on each rung of the ladder: pool, script, backends and settings."""
    rows = []
    for name, rung in RUNGS.items():
        settings = ", ".join(f"{setting} = {to}" for setting, to in rung.settings.items())
        backends = rung.backends or chapter.parameters.clients
        rows.append((name, rung.buffers, f"{rung.script}.pgbench", backends, settings))
    columns = ["rung", "shared_buffers, pages", "script", "backends", "settings"]
    return tables.table(pd.DataFrame(rows, columns=columns), "The rungs of the ladder")


def printed_ladder() -> pd.DataFrame:
    """The report's stages that print a throughput, under the names of the rungs beside them.

    The columns of `printed.derived("tp1_stages")`, and `name`.
    """
    stages = printed.derived("tp1_stages").dropna(subset="tp1")
    names = {rung.stage: name for name, rung in RUNGS.items()}
    return stages.assign(name=stages.index.map(names))


def apparatus(chapter: Chapter) -> tables.Table:
    """The report's machine and this one; what a machine is slow at decides what can be seen on it.

    Of somebody's server only the version and the pool are known: it may run on another machine.
    """
    then, now = printed.table("tp1_machine")["value"], chapter.run.environment["machine"]
    flush = now["fdatasync_8k_seconds"]
    pools = f"{POOL_1990}, then {POOL_ENLARGED} pages"
    processors, memory, disk, buffers = f"{now['cpus_usable']} ({now['cpu_model']})", "", "", pools
    if chapter.borrowed:
        processors += ", where this page was made"
        query = "SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers'"
        with chapter.server.connect() as connection:
            buffers = f"{value(connection, int, query):,d} pages"
    else:
        processors += "; the ladder uses one"
        memory = f"{now['memory_bytes'] / 1e6:,.0f} MB"
        disk = f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"
    rows = [
        ("system", "POSTGRES", f"PostgreSQL {chapter.run.environment['server']['version']}"),
        ("processors", "1", processors),
        ("speed", f"{then['processor']:g} million instructions per second", ""),
        ("memory", f"{then['memory']:g} MB", memory),
        ("disk", f"{then['disk_low']:g} to {then['disk_high']:g} accesses per second", disk),
        ("time to run", "", time_to_run("tp1")),
        ("buffer pool", pools, buffers),
    ]
    columns = ["", "1990", "this run"]
    return tables.table(pd.DataFrame(rows, columns=columns), "Apparatus then and now")


def relation_sizes(chapter: Chapter) -> tables.Table:
    """The relations and their indices as loaded, beside the report's: tuples, pages, levels."""
    bank = relations(chapter)
    bank.load(chapter.server)
    found = bank.facts(chapter.server)
    in_print = printed.table("tp1_relations")["tuples"].reindex(found["relation"]).to_numpy()
    frame = found[["relation", "kind", "tuples", "pages", "tuples_per_page", "levels"]]
    frame = frame.assign(tuples_1990=in_print)
    return tables.table(frame, "The relations and their indices as loaded")
