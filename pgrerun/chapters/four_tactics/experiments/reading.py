"""What PostgreSQL reads with nothing cached: larger reads, asynchronous reads, B-tree and hash."""

import time
from functools import partial

import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import SERIAL, STATEMENTS
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, counters, pgbench, processes, sizes
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Cluster, Server, set_session

SMALL_READS, LARGE_READS = "8kB", "128kB"
# variant to io_method and io_combine_limit
METHODS = {
    "sync, a page a read": ("sync", SMALL_READS),
    "sync, large reads": ("sync", LARGE_READS),
    "worker, a page a read": ("worker", SMALL_READS),
    "worker, large reads": ("worker", LARGE_READS),
}
SYNC_ONE, SYNC_LARGE, WORKER_ONE, WORKER_LARGE = METHODS
AHEAD = 16  # pages asked for before they are needed
UNITS = {
    "scan": "s",
    "scattered": "s",
    "reads": "reads of a scan",
    "switches": "voluntary switches of a scan",
    "together": "s",
    "alone": "s",
    "unprompted": "s",
}


@experiment(claims=["ston-041", "ston-042", "ston-043", "ston-044", "ston-050", "ston-057"])
def asynchronous(chapter: Chapter) -> None:
    """A sequential scan, and a bitmap scan of scattered pages, by PostgreSQL's ways of reading.

    Each is the only kind of scan that the planner may choose meanwhile: of its own it would answer
    the first from the index alone.

    Data are read past the operating system's cache and buffers evicted before each, so that every
    page comes from the disk. Also: of synchronous reads of a page each, the reads and voluntary
    switches of the scan; of asynchronous large reads, the scattered pages when none is asked for
    before it is needed; of large reads, a tenth of the scan alone and beside other clients'.
    """
    clusters = {}
    for method in ("sync", "worker"):
        cluster = chapter.cluster(io_method=method, debug_io_direct="data")
        if cluster.version < 180000:
            raise CannotMeasure("PostgreSQL 18", "Asynchronous I/O came with PostgreSQL 18.")
        cluster.extension("pg_buffercache")
        Parts(chapter.parameters.tuples, wide=True).load(cluster)
        with cluster.connect() as connection:
            STATEMENTS.run(connection, "reading.index")
        clusters[method] = cluster
    variants = [
        Variant(name, partial(_cold, chapter, name, clusters[method]))
        for name, (method, _) in METHODS.items()
    ]
    chapter.compare("asynchronous", variants, UNITS, warmup=0)


def _cold(chapter: Chapter, variant: str, cluster: Cluster, block: Block) -> dict[str, float]:
    _, limit = METHODS[variant]
    settings = {"io_combine_limit": limit, "effective_io_concurrency": AHEAD} | SERIAL
    with cluster.connect() as connection:
        set_session(connection, settings)
        STATEMENTS.run(connection, "reading.sequential_only")
        if variant == SYNC_ONE:
            spent = _counted_scan(cluster, connection)
        else:
            spent = {"scan": _evicted(connection, "reading.scan")}
        STATEMENTS.run(connection, "reading.bitmap_only")
        spent["scattered"] = _evicted(connection, "reading.scattered")
        if variant == WORKER_LARGE:
            STATEMENTS.run(connection, "reading.not_ahead")
            spent["unprompted"] = _evicted(connection, "reading.scattered")
        if limit == LARGE_READS:
            for name, clients in (("together", chapter.parameters.clients), ("alone", 1)):
                spent[name] = _tenths(cluster, connection, clients, block)
    return spent


def _evicted(connection: psycopg.Connection, statement: str) -> float:
    """Seconds of a statement when none of its pages is in the buffer pool."""
    STATEMENTS.run(connection, "reading.evict")
    return _seconds(connection, statement)


def _seconds(connection: psycopg.Connection, statement: str) -> float:
    query = STATEMENTS.text(statement)
    with clock.stopwatch() as watch:
        connection.execute(query)
    return watch.seconds


def _counted_scan(cluster: Cluster, connection: psycopg.Connection) -> dict[str, float]:
    """The same of the scan, with its reads and voluntary switches, where no other backend works."""
    STATEMENTS.run(connection, "reading.evict")
    reads, before = _reads(connection), processes.usage(cluster)
    seconds = _seconds(connection, "reading.scan")
    used = (processes.usage(cluster) - before).processes
    return {
        "scan": seconds,
        "reads": _reads(connection) - reads,
        "switches": used.loc[used["role"] == "client backend", "switches"].max(),
    }


def _reads(connection: psycopg.Connection) -> int:
    """Reads of relations until now."""
    counters.force_flush(connection)
    query = "SELECT sum(reads)::bigint FROM pg_stat_io WHERE object = 'relation'"
    return connection.execute(query).fetchone()[0]


def _tenths(cluster: Cluster, connection: psycopg.Connection, clients: int, block: Block) -> float:
    """Seconds of a scan of a tenth of the relation, by so many clients at once, each its own."""
    STATEMENTS.run(connection, "reading.evict")
    done = pgbench.run(
        cluster,
        STATEMENTS.script("tenth"),
        clients=clients,
        jobs=min(clients, 2),
        transactions=1,
        seed=block.seed,
        variables={"pages": sizes.pages(connection, "parts")},
    )
    return done.latency_ms / 1000


@experiment(claims=["ston-025"])
def copying(chapter: Chapter) -> None:
    """The kernel's share of a backend's CPU while it scans what only the operating system has."""
    cluster = chapter.cluster(shared_buffers="1MB", **chapter.programs.synchronous_io)
    Parts(chapter.parameters.tuples, wide=True).load(cluster)
    variants = [Variant("scan", partial(_copied, chapter, cluster))]
    chapter.compare("copying", variants, {"kernel": "share of CPU"}, warmup=0)


def _copied(chapter: Chapter, cluster: Cluster, block: Block) -> dict[str, float]:
    with cluster.connect() as connection:
        set_session(connection, SERIAL)
        before = processes.usage(cluster)
        until = time.perf_counter() + chapter.parameters.milliseconds / 1000
        while time.perf_counter() < until:
            STATEMENTS.run(connection, "commands.scan").fetchall()
        used = processes.usage(cluster) - before
    return {"kernel": used.kernel_share("client backend")}


ACCESS_METHODS = ("btree", "hash")


@experiment(claims=["ston-047"])
def keyed(chapter: Chapter) -> None:
    """Query f by tuple substitution (a nested loop) on a B-tree and on a hash index: seconds."""
    server = chapter.server
    for method in ACCESS_METHODS:
        Parts(wide=True).load(server, f"parts_{method}", method)
    variants = [Variant(method, partial(_join, server, method)) for method in ACCESS_METHODS]
    chapter.compare("keyed", variants, {"seconds": "s"})


def _join(server: Server, method: str, block: Block) -> dict[str, float]:
    query = STATEMENTS.text("reading.query_f", relation=f"parts_{method}")
    with server.connect() as connection:
        STATEMENTS.run(connection, "reading.nested_loop_only")
        with clock.stopwatch() as watch:
            for _ in range(5):
                connection.execute(query).fetchall()
    return {"seconds": watch.seconds}
