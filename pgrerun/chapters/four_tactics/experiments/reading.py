"""A file system of its own: what the kernel reads ahead, what reading a raw file costs, and what
PostgreSQL reads with nothing cached: larger reads, asynchronous reads, past the kernel.
"""

import os
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

import psycopg

from pgrerun.chapters.four_tactics.experiments.parts import (
    KEYED,
    LONG,
    SERIAL,
    SQL,
    benchmark,
    load_benchmark,
    relation,
    run_text,
)
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import (
    clock,
    cold_files,
    counters,
    pgbench,
    plans,
    process_table,
    sizes,
)
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Cluster, releases, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

# ---- raw files

_START = 50  # away from the file's start, where the kernel expects a scan
PATTERNS = {
    "one block": [_START],
    "two in a row": [_START, _START + 1],
    "eight far apart": [_START + 110 * n for n in range(8)],
    "40 in a row": list(range(_START, _START + 40)),
    # as a scan of main pages with overflow pages goes: away after every fifth block, and back
    "40, with jumps": [
        600 + 50 * (n // 6) if n % 6 == 5 else _START + n - n // 6 for n in range(48)
    ],
}


@experiment(units={"reads": "reads", "asked": "kB", "fetched": "kB"})
def kernel_ahead(bed: Testbed, megabytes: int = 4) -> Iterator[Row]:
    """What the kernel fetches from storage for a few reads of 4 kB on a cold file.

    CannotMeasure where the operating system keeps what it is asked to forget.
    """
    cold_files.require_forgettable()
    for name, blocks in PATTERNS.items():
        # a file each: what is still being fetched ahead can't be forgotten
        with cold_files.scratch(megabytes) as path:
            fetched = cold_files.fetched(path, blocks) // 1024
        asked = len(blocks) * cold_files.BLOCK // 1024
        yield {"pattern": name, "reads": len(blocks), "asked": asked, "fetched": fetched}


DIRECT, WARM, NOT_AHEAD = {"direct": True}, {"warm": True}, {"ahead": False}
# By name so many kB at a time, whether in any order, and what else `cold_files.read` is told.
READINGS: dict[str, tuple[int, bool, dict[str, bool]]] = {
    "in order, 8 kB, read ahead by nobody": (8, False, DIRECT),
    "blocks shuffled, 8 kB, likewise": (8, True, DIRECT),
    "from the cache, 1 kB": (1, False, WARM),
    "from the cache, 8 kB": (8, False, WARM),
    # a track was sixteen blocks of a kB (section 4.1)
    "in order, 16 kB, read ahead by nobody": (16, False, NOT_AHEAD),
    "the same, into user space": (16, False, DIRECT),
    "in order, 128 kB, read ahead by nobody": (128, False, NOT_AHEAD),
    "in order, 128 kB, into user space": (128, False, DIRECT),
    "in order, 16 kB, read ahead by the kernel": (16, False, {}),
}


@experiment(units={"wall": "ms/MB", "cpu": "ms/MB", "waits": "waits/MB", "waiting": ""})
def raw_files(bed: Testbed) -> Iterator[Row]:
    """One file read whole in several ways; the operating system has forgotten it, or has it all.

    For a MB: wall clock, CPU, and how often the process waited; and the share of its time that it
    did.
    """
    megabytes = bed.parameters.megabytes
    with cold_files.scratch(megabytes) as path:

        def measure(block: Block, reading: str) -> dict[str, float]:
            kilobytes, shuffled, how = READINGS[reading]
            size = kilobytes * 1024
            places = list(range(0, megabytes << 20, size))
            if shuffled:
                random.Random(block.seed).shuffle(places)
            spent = cold_files.read(path, places, size, **how)
            return {
                "wall": 1000 * spent.wall / megabytes,
                "cpu": 1000 * spent.cpu / megabytes,
                "waits": spent.waits / megabytes,
                "waiting": max(0.0, 1 - spent.cpu / spent.wall),
            }

        yield from bed.compare(measure, {"reading": list(READINGS)}, warmup=0)


# ---- by PostgreSQL

READS = {"a page a read": "8kB", "large reads": "128kB"}
AHEAD = 16  # pages asked for before they are needed


@experiment(
    units={
        "scan": "s",
        "scattered": "s",
        "reads": "reads",
        "switches": "switches",
        "waiting_scan": "",
        "waiting_scattered": "",
        "together": "s",
        "alone": "s",
    }
)
def asynchronous(bed: Testbed) -> Iterator[Row]:
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
        settings = {"io_method": method, "debug_io_direct": "data", "track_io_timing": "on"}
        clusters[method] = _indexed(bed, bed.cluster(**settings))

    timed = bed.timed_pairs(bed.fewer_pairs)  # what is counted is, in every block

    def measure(block: Block, method: str, size: str) -> dict[str, float]:
        cluster, spent = clusters[method], {}
        with cluster.connect() as connection:
            _read_by(connection, size)
            for what, only in (("scan", "sequential_only"), ("scattered", "bitmap_only")):
                SQL.run(connection, f"reading.{only}")
                spent |= _evicted(cluster, connection, what, method == "sync")
            if size == "large reads" and block.index < timed:
                # more clients than processors would wait for one another's processors
                several = min(bed.parameters.clients, max(2, len(os.sched_getaffinity(0))))
                for name, clients in (("together", several), ("alone", 1)):
                    spent[name] = _tenths(cluster, connection, clients, block)
        return spent

    variants = {"method": list(clusters), "size": list(READS)}
    yield from bed.compare(measure, variants, pairs=bed.fewer_pairs, warmup=0)


def _evictable(cluster: Cluster) -> Cluster:
    """The cluster, from whose buffers one relation can be evicted now."""
    releases.require_settings(cluster.version, ["io_method"])
    cluster.extension("pg_buffercache")
    return cluster


def _indexed(bed: Testbed, cluster: Cluster) -> Cluster:
    """The same with wide tuples, and the index by which some of them are found all over."""
    Parts(bed.parameters.tuples, wide=True).load(_evictable(cluster))
    with cluster.connect() as connection:
        SQL.run(connection, "reading.index")
    return cluster


def _forget(cluster: Cluster, connection: psycopg.Connection, relation: str) -> None:
    """Put a relation and its indexes out of the buffer pool and of the kernel's cache."""
    for (file,) in SQL.run(connection, "reading.forget", relation=relation).fetchall():
        cold_files.forget(cluster.data_directory / file)


def _read_by(connection: psycopg.Connection, size: str) -> None:
    """Have a session read in one process, and so many pages at once (a key of `READS`)."""
    settings = {"io_combine_limit": READS[size], "effective_io_concurrency": AHEAD}
    set_session(connection, settings | SERIAL)


def _evicted(
    cluster: Cluster, connection: psycopg.Connection, what: str, synchronous: bool
) -> dict[str, float]:
    """Seconds of a statement when none of its pages is in the buffer pool.

    Of synchronous reads also the share that waited for them, and of a scan its reads and voluntary
    switches; no other backend works meanwhile.
    """
    SQL.run(connection, "reading.evict")
    query = SQL.text(f"reading.{what}")
    (reads, milliseconds), before = _reads(connection), process_table.usage(cluster)
    with clock.stopwatch() as watch:
        connection.execute(query)
    if not synchronous:
        return {what: watch.seconds}
    used = (process_table.usage(cluster) - before).processes
    more_reads, more_milliseconds = _reads(connection)
    waited = (more_milliseconds - milliseconds) / 1000
    found = {what: watch.seconds, f"waiting_{what}": waited / watch.seconds}
    if what == "scan":
        switches = used.loc[used["role"] == "client backend", "switches"].max()
        # a count of none has no ratio: half a one stands for it
        found |= {"reads": more_reads - reads, "switches": max(0.5, float(switches))}
    return found


def _reads(connection: psycopg.Connection) -> tuple[int, float]:
    """Reads of relations until now, and the milliseconds that they took."""
    counters.force_flush(connection)
    return SQL.run(connection, "reading.reads").fetchone()


def _tenths(cluster: Cluster, connection: psycopg.Connection, clients: int, block: Block) -> float:
    """Seconds of a scan of a tenth of the relation, by so many clients at once, each its own."""
    SQL.run(connection, "reading.evict")
    done = pgbench.run(
        cluster,
        SQL.script("tenth"),
        clients=clients,
        jobs=min(clients, 2),
        transactions=1,
        seed=block.seed,
        variables={"pages": sizes.pages(connection, "parts")},
    )
    return done.latency_ms / 1000


@experiment(units={"scattered": "s", "waiting": ""}, needs=["restart"])
def advised(bed: Testbed) -> Iterator[Row]:
    """The bitmap scan of scattered pages on cold files, the kernel told of the next ones or not.

    One process, which waits for each read; what the kernel is told of, by posix_fadvise, it reads
    meanwhile. Also the share of the time that waits for reads. CannotMeasure where it keeps what
    it is asked to forget, and before PostgreSQL 18.
    """
    cold_files.require_forgettable()
    cluster = _indexed(bed, bed.cluster(io_method="sync", track_io_timing="on"))

    def measure(block: Block, told: str) -> dict[str, float]:
        with cluster.connect() as connection:
            _read_by(connection, "large reads")
            if told == "nothing":
                set_session(connection, {"effective_io_concurrency": 0})
            for only in ("sequential_only", "bitmap_only"):
                SQL.run(connection, f"reading.{only}")
            _forget(cluster, connection, "parts")
            _, before = _reads(connection)
            with clock.stopwatch() as watch:
                connection.execute(SQL.text("reading.scattered"))
            _, milliseconds = _reads(connection)
        waiting = (milliseconds - before) / 1000 / watch.seconds
        return {"scattered": watch.seconds, "waiting": waiting}

    pairs = bed.timed_pairs(bed.fewer_pairs)
    yield from bed.compare(measure, {"told": ["nothing", "the next pages"]}, pairs=pairs, warmup=0)


ROUNDS = 5  # scans at the machine's own speed, whose median sets the disk
# Share of its time for which a scan that waits for each track is to wait, on the slowed disk.
WAITED = 0.6


@experiment(
    units={"scan": "s", "waiting": "", "requests": "requests", "request_ms": "ms"},
    needs=["restart"],
)
def prefetched(bed: Testbed) -> Iterator[Row]:
    """A scan by tracks on a disk that serves one request at a time, waited for or read ahead.

    The condition is query d's. A track takes so long that the scan that waits for each does so for
    `WAITED` of its time, somewhat more than FS-INGRES with queries g and i in print. The kernel has
    every page cached, so that the disk's time is all that a read takes beside copying it. Again and
    again for as long as the parameter says. Also the requests of a scan, what each takes, and for
    which share of its time the scan that waits for them did so.
    """
    found = {}
    for method in ("sync", "worker"):
        cluster, slow = bed.cluster_on_slow_disk(io_method=method, track_io_timing="on")
        Parts(bed.parameters.tuples).load(_evictable(cluster))
        found[method] = cluster, slow
    with found["sync"][0].connect() as connection:
        _by_tracks(connection)
        tracks = sizes.pages(connection, "parts") / AHEAD
        computing = statistics.median(_scanned(connection) for _ in range(ROUNDS))
    taken = WAITED / (1 - WAITED) * computing / tracks

    def measure(block: Block, method: str) -> dict[str, float]:
        cluster, slow = found[method]
        least = bed.parameters.milliseconds / 1000
        with cluster.connect() as connection:
            _by_tracks(connection)
            with slow.serving(Disk(read=taken, only="base/")) as stretch:
                scans = clock.repeated(lambda: _scanned(connection), least)
                asked = stretch.counts().reads
        spent = {
            "scan": sum(scans) / len(scans),
            "requests": asked.requests / len(scans),
            "request_ms": 1000 * taken,
        }
        return spent | ({"waiting": asked.busy / sum(scans)} if method == "sync" else {})

    pairs = bed.timed_pairs(bed.fewer_pairs)
    yield from bed.compare(measure, {"method": list(found)}, pairs=pairs)


def _by_tracks(connection: psycopg.Connection) -> None:
    """A session that scans, sixteen pages a read, in one process."""
    _read_by(connection, "large reads")
    connection.execute("EXPLAIN " + SQL.text("commands.query_d"))  # the catalogs are no part of it


def _scanned(connection: psycopg.Connection) -> float:
    """Seconds of the scan with query d's condition, when none of its pages is in the pool."""
    SQL.run(connection, "reading.forget", relation="parts").fetchall()
    with clock.stopwatch() as watch:
        connection.execute(SQL.text("commands.query_d")).fetchone()
    return watch.seconds


# debug_io_direct and io_combine_limit of each: 16 pages of 8 kB, as many as a track had
FILE_SYSTEMS = {"kernel": ("", "8kB"), "raw tracks": ("data", "128kB")}
LARGE = 33_600
COLD_RUNS = [("b", 1), *LONG, ("b", LARGE), ("c", LARGE), ("d", LARGE)]


@experiment(units={"wall": "s", "cpu": "s"})
def file_systems(bed: Testbed) -> Iterator[Row]:
    """The benchmark's runs on cold relations, on the kernel's files with its reading ahead, or raw.

    Raw is what FS-INGRES did: a track of 16 pages with each read, into user space, past the kernel,
    and waited for. Joins by tuple substitution; scans also of ten times the tuples, again and again
    for as long as the parameter says, and commands on the printed ones for a tenth of that. Runs of
    one tuple are done ten times. CannotMeasure where the kernel keeps what it is asked to forget,
    before PostgreSQL 18, and where the backend can't be watched.
    """
    cold_files.require_forgettable()
    clusters = {}
    for name, (direct, _) in FILE_SYSTEMS.items():
        settings = {"io_method": "sync", "debug_io_direct": direct, "track_io_timing": "on"}
        clusters[name] = _evictable(bed.cluster(**settings))
        clusters[name].require("processes")
        load_benchmark(clusters[name])
        Parts(LARGE).load(clusters[name], f"parts_{LARGE}")

    def measure(block: Block, files: str, query: str, tuples: int) -> dict[str, float]:
        cluster, spent = clusters[files], {"wall": 0.0, "cpu": 0.0}
        text = run_text(query, tuples)
        with cluster.connect() as connection:
            SQL.run(connection, "benchmark.as_ingres")
            set_session(connection, {"io_combine_limit": FILE_SYSTEMS[files][1]})
            backend = Path(f"/proc/{connection.info.backend_pid}")
            connection.execute(f"EXPLAIN {text}")  # the catalogs are no part of it
            least = bed.parameters.milliseconds / 1000 * (tuples if tuples > 1 else 0) / LARGE
            times = 0
            while times < (10 if tuples == 1 else 1) or spent["wall"] < least:
                times += 1
                _forget(cluster, connection, relation(query, tuples))
                before = process_table.processor_seconds(backend)
                with clock.stopwatch() as watch:
                    connection.execute(text).fetchall()
                spent["wall"] += watch.seconds
                spent["cpu"] += process_table.processor_seconds(backend) - before
        return {name: total / times for name, total in spent.items()}

    variants = [
        {"files": files, "query": query, "tuples": tuples}
        for query, tuples in COLD_RUNS
        for files in FILE_SYSTEMS
    ]
    yield from bed.compare(measure, variants, pairs=bed.timed_pairs(bed.fewer_pairs))


@experiment(units={"pages": "pages"})
def keyed(bed: Testbed) -> Iterator[Row]:
    """Pages that each query with a key touches on PostgreSQL, by the kind of the index on it."""
    for method in ("btree", "hash"):
        Parts(wide=True).load(bed.server, "parts_keyed", method)
        with bed.server.connect() as connection:
            SQL.run(connection, "benchmark.as_ingres")
            for query in KEYED:
                plan = plans.explain(connection, benchmark(query, "parts_keyed"), execute=True)
                yield {"query": query, "index": method, "pages": plan.page_accesses}
