"""What PostgreSQL reads with nothing cached: larger reads, asynchronous reads, past the kernel."""

import os
from functools import partial
from pathlib import Path

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import (
    SERIAL,
    STATEMENTS,
    benchmark,
    load_benchmark,
    relation,
)
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.ingres.benchmark import WIDE_QUERIES
from pgrerun.lab.instruments import (
    clock,
    cold_files,
    counters,
    pgbench,
    plans,
    proc,
    processes,
    sizes,
)
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Cluster, releases, set_session

SMALL_READS, LARGE_READS = "8kB", "128kB"
# variant to io_method and io_combine_limit
METHODS = {
    "sync, a page a read": ("sync", SMALL_READS),
    "sync, large reads": ("sync", LARGE_READS),
    "worker, a page a read": ("worker", SMALL_READS),
    "worker, large reads": ("worker", LARGE_READS),
}
SYNC_ONE, SYNC_LARGE, _, WORKER_LARGE = METHODS
AHEAD = 16  # pages asked for before they are needed
UNITS = {
    "scan": "s",
    "scattered": "s",
    "reads": "reads of a scan",
    "switches": "voluntary switches of a scan",
    "waiting, scan": "share of its time",
    "waiting, scattered": "share of its time",
    "together": "s",
    "alone": "s",
}


@experiment(claims=["ston-041", "ston-042", "ston-044", "ston-050"])
def asynchronous(chapter: Chapter) -> None:
    """A sequential scan, and a bitmap scan of scattered pages, by PostgreSQL's ways of reading.

    Each is the only kind of scan that the planner may choose meanwhile: of its own it would answer
    the first from the index alone.

    Data are read past the operating system's cache and buffers evicted before each, so that every
    page comes from the disk. Also: of synchronous reads, the reads and voluntary switches of the
    scan, and the share of their time that scan and scattered pages waited for reads; of large
    reads, a tenth of the scan alone and beside other clients', no more of them than processors.
    """
    clusters = {}
    for method in ("sync", "worker"):
        cluster = _evictable(chapter, io_method=method, debug_io_direct="data")
        Parts(chapter.parameters.tuples, wide=True).load(cluster)
        with cluster.connect() as connection:
            STATEMENTS.run(connection, "reading.index")
        clusters[method] = cluster
    variants = [
        Variant(name, partial(_cold, chapter, name, clusters[method]))
        for name, (method, _) in METHODS.items()
    ]
    chapter.compare("asynchronous", variants, UNITS, warmup=0)


def _evictable(chapter: Chapter, **settings: str) -> Cluster:
    """A cluster whose buffers can be emptied of one relation."""
    cluster = chapter.cluster(track_io_timing="on", **settings)
    releases.require_settings(cluster.version, ["io_method"])
    cluster.extension("pg_buffercache")
    return cluster


def _cold(chapter: Chapter, variant: str, cluster: Cluster, block: Block) -> dict[str, float]:
    _, limit = METHODS[variant]
    settings = {"io_combine_limit": limit, "effective_io_concurrency": AHEAD} | SERIAL
    with cluster.connect() as connection:
        set_session(connection, settings)
        STATEMENTS.run(connection, "reading.sequential_only")
        synchronous = variant in (SYNC_ONE, SYNC_LARGE)
        spent = _evicted(cluster, connection, "scan", synchronous)
        STATEMENTS.run(connection, "reading.bitmap_only")
        spent |= _evicted(cluster, connection, "scattered", synchronous)
        if limit == LARGE_READS:
            # more clients than processors would wait for one another's processors
            several = min(chapter.parameters.clients, max(2, len(os.sched_getaffinity(0))))
            for name, clients in (("together", several), ("alone", 1)):
                spent[name] = _tenths(cluster, connection, clients, block)
    return spent


def _evicted(
    cluster: Cluster, connection: psycopg.Connection, what: str, synchronous: bool
) -> dict[str, float]:
    """Seconds of a statement when none of its pages is in the buffer pool.

    Of synchronous reads also the share that waited for them, and of a scan its reads and voluntary
    switches; no other backend works meanwhile.
    """
    STATEMENTS.run(connection, "reading.evict")
    query = STATEMENTS.text(f"reading.{what}")
    (reads, milliseconds), before = _reads(connection), processes.usage(cluster)
    with clock.stopwatch() as watch:
        connection.execute(query)
    if not synchronous:
        return {what: watch.seconds}
    used = (processes.usage(cluster) - before).processes
    more_reads, more_milliseconds = _reads(connection)
    waited = (more_milliseconds - milliseconds) / 1000
    found = {what: watch.seconds, f"waiting, {what}": waited / watch.seconds}
    if what == "scan":
        switches = used.loc[used["role"] == "client backend", "switches"].max()
        found |= {"reads": more_reads - reads, "switches": switches}
    return found


def _reads(connection: psycopg.Connection) -> tuple[int, float]:
    """Reads of relations until now, and the milliseconds that they took."""
    counters.force_flush(connection)
    return STATEMENTS.run(connection, "reading.reads").fetchone()


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


# ---- the tactic itself

UNIX, RAW = "files of the operating system, a page at a time", "raw, a track at a time"
# variant to debug_io_direct and io_combine_limit: 16 pages of 8 kB, as many as a track had
FILE_SYSTEMS = {UNIX: ("", SMALL_READS), RAW: ("data", LARGE_READS)}
MORE_SCANS = ("b_33600", "c_33600", "d_33600")
COLD_RUNS = {"b_1": 10} | dict.fromkeys((*LONG, *MORE_SCANS), 1)
"""Runs, and how often each, since one of one tuple alone is near the clock's grain."""


@experiment(claims=["ston-035", "ston-040", "ston-046"])
def file_systems(chapter: Chapter) -> None:
    """The benchmark's runs on cold relations, on the kernel's files with its reading ahead, or raw.

    Raw is what FS-INGRES did: a track of 16 pages with each read, into user space, past the kernel,
    and waited for. Seconds, and of CPU; joins by tuple substitution; scans also of ten times the
    tuples. CannotMeasure where the kernel
    keeps what it is asked to forget, before PostgreSQL 18, and where the backend can't be watched.
    """
    cold_files.require_forgettable()
    variants, units = [], {f"wall {run}": "s" for run in COLD_RUNS}
    units |= {f"cpu {run}": "s of CPU" for run in COLD_RUNS}
    for name, (direct, limit) in FILE_SYSTEMS.items():
        cluster = _evictable(chapter, io_method="sync", debug_io_direct=direct)
        cluster.require("processes")
        load_benchmark(cluster)
        Parts(33_600).load(cluster, "parts_33600")
        variants.append(Variant(name, partial(_cold_runs, cluster, limit)))
    chapter.compare("file systems", variants, units)


def _cold_runs(cluster: Cluster, limit: str, block: Block) -> dict[str, float]:
    spent = dict.fromkeys((f"{what} {run}" for what in ("wall", "cpu") for run in COLD_RUNS), 0.0)
    with cluster.connect() as connection:
        STATEMENTS.run(connection, "benchmark.as_ingres")
        set_session(connection, {"io_combine_limit": limit})
        backend = Path(f"/proc/{connection.info.backend_pid}")
        for run in [run for run, times in COLD_RUNS.items() for _ in range(times)]:
            query = benchmark(run)
            connection.execute(f"EXPLAIN {query}")  # the catalogs are no part of it
            files = STATEMENTS.run(connection, "reading.forget", relation=relation(run)).fetchall()
            for (file,) in files:
                cold_files.forget(cluster.data_directory / file)
            before = proc.processor_seconds(backend)
            with clock.stopwatch() as watch:
                connection.execute(query).fetchall()
            spent[f"wall {run}"] += watch.seconds
            spent[f"cpu {run}"] += proc.processor_seconds(backend) - before
    return spent


def keyed(chapter: Chapter) -> pd.DataFrame:
    """Pages that each query with a key touches, by the kind of the index on it. Exact.

    Columns: query, btree, hash.
    """
    rows = {}
    for method in ("btree", "hash"):
        Parts(wide=True).load(chapter.server, "parts_keyed", method)
        with chapter.server.connect() as connection:
            STATEMENTS.run(connection, "benchmark.as_ingres")
            for query in WIDE_QUERIES:
                text = STATEMENTS.text(f"benchmark.{query}", relation="parts_keyed").rstrip(";")
                plan = plans.explain(connection, text, execute=True)
                rows.setdefault(query, {"query": query})[method] = plan.page_accesses
    return pd.DataFrame(rows.values())
