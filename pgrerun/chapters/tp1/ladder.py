"""The report's ladder: its steps as PostgreSQL can still take them, and the load that climbs it."""

import time
from dataclasses import dataclass
from functools import partial

import pandas as pd

from pgrerun import published, statistics, tables
from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import pgbench, processes
from pgrerun.parameters import time_to_run
from pgrerun.relations.debit_credit import DebitCredit
from pgrerun.server import Cluster, Server

POOL_1990 = 16  # pages of 8 kB: the report's default, and PostgreSQL's smallest pool today
POOL_ENLARGED = 48
REPORT_BATCH = 300  # transactions that the report profiled together, section 2.2
POOL_TODAY = 16384  # PostgreSQL's default of 128 MB


@dataclass(frozen=True)
class Rung:
    """One step of the report's ladder and how it is taken today.

    `stage` names the row of data/published/tp1_stages.csv it stands beside ("" where
    the report prints no throughput). `probes` is how many random pages a replacement
    looks at for free space; `force` flushes every changed page at commit, by a
    checkpoint after each transaction; `stable` doesn't wait for the log at commit.
    """

    name: str
    stage: str
    buffers: int
    probes: int
    force: bool
    backends: int = 0  # 0: as many as the parameter `clients` says
    stable: bool = False


ALONE = "one backend"
TOGETHER = "several backends"
ENLARGED = "48 pages"
APPEND = "no probing for space"
LOGGED = "log at commit"
STABLE = "stable memory"
AGAIN = "several backends, again"

RUNGS = (
    Rung(ALONE, "one", POOL_1990, probes=3, force=True, backends=1),
    Rung(TOGETHER, "two", POOL_1990, probes=3, force=True),
    Rung(AGAIN, "", POOL_1990, probes=3, force=True),
    Rung(ENLARGED, "pool", POOL_ENLARGED, probes=3, force=True),
    Rung(APPEND, "append", POOL_ENLARGED, probes=0, force=True),
    Rung(LOGGED, "", POOL_ENLARGED, probes=0, force=False),
    Rung(STABLE, "stable", POOL_ENLARGED, probes=0, force=False, stable=True),
)

RELATIONS = ("branch", "teller", "account", "history")
NOT_WAITING = {"synchronous_commit": "off"}  # what a session of the rung of stable memory sets
INDEXES = ("branch_index", "teller_index", "account_index")
LOAD_UNITS = {
    "throughput": "transactions/s",
    "processor": "share of one processor",
    "checkpoints per transaction": "",
    "growth": "pages/transaction",
}


def relations(chapter: Chapter) -> DebitCredit:
    """The report's relations (Figure 2.2) at the chapter's scale."""
    return DebitCredit.report(chapter.parameters.scale)


def apparatus(chapter: Chapter) -> tables.Table:
    """The report's machine and this one; what a machine is slow at decides what can be seen on it.

    Of somebody's server only the version and the pool are known: it may run on another machine.
    """
    then, now = published.table("tp1_machine")["value"], chapter.run.environment["machine"]
    flush = now["fdatasync_8k_seconds"]
    processors = f"{now['cpus_usable']} ({now['cpu_model']})"
    if chapter.borrowed:
        processors, memory, disk = f"{processors}, where this page was made", "", ""
        buffers = f"{_buffers(chapter.server):,d} pages"
    else:
        processors, memory = f"{processors}; the ladder uses one", f"{now['memory_bytes'] / 1e6:,.0f} MB"
        disk = f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"
        buffers = f"{POOL_1990}, then {POOL_ENLARGED} pages"
    rows = [
        ("system", "POSTGRES", f"PostgreSQL {chapter.run.environment['server']['version']}"),
        ("processors", "1", processors),
        ("speed", f"{then['processor']:g} million instructions per second", ""),
        ("memory", f"{then['memory']:g} MB", memory),
        ("disk", f"{then['disk_low']:g} to {then['disk_high']:g} accesses per second", disk),
        ("time to run", "", time_to_run("tp1")),
        ("buffer pool", f"{POOL_1990}, then {POOL_ENLARGED} pages", buffers),
    ]  # fmt: skip
    return tables.table(pd.DataFrame(rows, columns=["", "1990", "this run"]), "Apparatus then and now")


def _buffers(server: Server) -> int:
    """Pages of a server's buffer pool."""
    with server.connect() as connection:
        return connection.execute("SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers'").fetchone()[0]


def sizes(chapter: Chapter) -> tables.Table:
    """The relations and their indices as loaded, beside the report's: tuples, pages, levels."""
    tp1 = relations(chapter)
    tp1.load(chapter.server)
    found = tp1.facts(chapter.server)
    printed = published.table("tp1_relations")["tuples"].reindex(found["relation"]).to_numpy()
    frame = found[["relation", "kind", "tuples", "pages", "tuples_per_page", "levels"]]
    return tables.table(frame.assign(tuples_1990=printed), "The relations and their indices as loaded")


def differences(chapter: Chapter) -> tables.Table:
    """Figure 2.3's transaction and pgbench's built-in side by side, measured on both sets of relations."""
    cluster, tp1 = chapter.cluster(), relations(chapter)
    tp1.load(cluster)
    return tables.table(tp1.against_tpcb_like(cluster), "The report's transaction and pgbench's built-in")


def ladder(chapter: Chapter) -> None:
    """Rerun the report's ladder: each rung in each block, on a server started for the block.

    The server is held on one processor, as the DECstation had one; pgbench is not.
    PostgreSQL's background writer is off: 1990 had none.
    """
    fresh, length = Fresh(chapter), Length(chapter)
    arms = [Arm(rung.name, partial(_climb, chapter, length, rung), partial(fresh, rung)) for rung in RUNGS]
    chapter.compare("ladder", arms, LOAD_UNITS, warmup=0)  # each block starts its servers anew, so nothing stays warm
    if chapter.parameters.clients != 2:
        reason = f"the report ran two backends, and this run {chapter.parameters.clients}"
        chapter.set_aside(CannotMeasure("clients = 2", reason), BACKEND_CLAIMS)


# Claims whose printed number compares one backend with two.
BACKEND_CLAIMS = ("lai-046", "lai-047", "lai-054", "lai-058", "lai-059")


def pool(chapter: Chapter, rung: Rung) -> Cluster:
    """The cluster on which a rung is climbed."""
    return pooled(chapter, rung.buffers)


def pooled(chapter: Chapter, buffers: int) -> Cluster:
    """A cluster whose pool has so many pages."""
    return chapter.cluster(shared_buffers=f"{buffers * 8}kB", bgwriter_lru_maxpages=0)


class Fresh:
    """Prepares rungs: once per block, the relations are loaded, on a server that restarts for it on one processor.

    restart: without, the server stays, for what is counted and not timed.
    """

    def __init__(self, chapter: Chapter, restart: bool = True):
        self._chapter, self._restart = chapter, restart
        self._ready: dict[Cluster, int] = {}  # block: several rungs climb on one cluster

    def __call__(self, rung: Rung, block: Block) -> bool:
        """Whether anything had to be prepared."""
        cluster = pool(self._chapter, rung)
        if self._ready.get(cluster) == block.index:
            return False
        if self._restart:
            cluster.restart()
            cluster.pin({0})
        relations(self._chapter).load(cluster)
        self._ready[cluster] = block.index
        return True


class Length:
    """How many transactions make an observation of the chapter's length; tried out once for each arm.

    A number, not a time: pgbench counts in whole seconds, and every block is to do equal work.
    """

    TRIED = 10  # of each backend, and the least that an observation has

    def __init__(self, chapter: Chapter):
        self._chapter = chapter
        self._of: dict[str, int] = {}

    def __call__(self, arm: str, server: Server, backends: int, **load) -> int:
        """Transactions of each backend."""
        if arm not in self._of:
            tried = pgbench.run(server, clients=backends, transactions=self.TRIED, **load)
            self._of[arm] = max(self.TRIED, round(tried.tps * self._chapter.parameters.milliseconds / 1000 / backends))
        return self._of[arm]


def _climb(chapter: Chapter, length: Length, rung: Rung, block: Block) -> dict[str, float]:
    cluster, tp1 = pool(chapter, rung), relations(chapter)
    load = {"script": tp1.script(probes=rung.probes, checkpoint=rung.force), "variables": tp1.variables(cluster)}
    if rung.stable:  # a connection string in the place of the database's name
        options = " ".join(f"-c {name}={value}" for name, value in ({"search_path": cluster.schema} | NOT_WAITING).items())
        load["more"] = (f"options='{options}'",)
    return drive(chapter, length, rung.name, cluster, rung.backends, seed=block.seed, **load)


def drive(chapter: Chapter, length: Length, arm: str, server: Server, backends: int = 0, **load) -> dict[str, float]:
    """Drive as many transactions as make an observation: throughput, processor share, checkpoints, growth.

    `backends` is the parameter `clients` unless given; `load` goes to pgbench.
    """
    backends = backends or chapter.parameters.clients
    transactions = length(arm, server, backends, **load)
    watched = server.owned  # whose processes, and their processor time, can be told from others
    before = (_state(server), processes.usage(server).cpu_seconds if watched else None)
    clock = time.perf_counter()
    result = pgbench.run(server, clients=backends, transactions=transactions, **load)
    elapsed = time.perf_counter() - clock
    after = (_state(server), processes.usage(server).cpu_seconds if watched else None)
    checkpoints, grown = ((now - then) / result.transactions for now, then in zip(after[0], before[0]))
    metrics = {"throughput": result.tps, "checkpoints per transaction": checkpoints, "growth": grown}
    if watched:
        metrics["processor"] = (after[1] - before[1]) / elapsed
    return metrics


def _state(server: Server) -> tuple[int, int]:
    """Checkpoints so far, and pages of the relations and indices in our schema."""
    query = """
        SELECT (SELECT num_timed + num_requested FROM pg_stat_checkpointer),
               (SELECT sum(pg_relation_size(oid)) / 8192 FROM pg_class WHERE relnamespace = current_schema()::regnamespace)"""
    with server.connect() as connection:
        return tuple(map(int, connection.execute(query).fetchone()))


def printed_ladder() -> pd.DataFrame:
    """The report's stages that print a throughput, under the names of the rungs beside them.

    The columns of `published.derived("tp1_stages")`, and `name`.
    """
    stages = published.derived("tp1_stages").dropna(subset="tp1")
    return stages.assign(name=[next(rung.name for rung in RUNGS if rung.stage == stage) for stage in stages.index])


def over_first(chapter: Chapter, rung: str) -> statistics.Interval | None:
    """Throughput of a rung over that of the first."""
    return chapter.ratio("ladder", "throughput", rung, ALONE)


def named(name: str) -> Rung:
    """The rung of that name."""
    return next(rung for rung in RUNGS if rung.name == name)
