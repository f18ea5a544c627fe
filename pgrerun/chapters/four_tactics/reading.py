"""What file systems and asynchronous I/O give today: raw files first, then PostgreSQL's scans with nothing cached."""

import mmap
import os
import random
import resource
import time
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.files import scratch
from pgrerun.chapters.four_tactics.miniature import structure_facts
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, pgbench, processes
from pgrerun.relations import Parts
from pgrerun.server import Cluster, set_session

# ---- raw files

IN_ORDER, SHUFFLED, SMALL, LARGE, DIRECT = (
    "in order, 8 kB", "blocks shuffled, 8 kB", "in order, 1 kB", "in order, 128 kB", "the same, into user space",
)  # fmt: skip
_KB = 1024


def raw_files(chapter: Chapter) -> None:
    """One file read whole in several ways, after the operating system has forgotten it: milliseconds of wall clock and of CPU for a MB."""
    megabytes = chapter.parameters.megabytes
    with scratch(megabytes) as path:
        ways = {IN_ORDER: (8, False, False), SHUFFLED: (8, True, False), SMALL: (1, False, False), LARGE: (128, False, False), DIRECT: (128, False, True)}
        arms = [Arm(name, partial(_read_all, path, megabytes, *way)) for name, way in ways.items()]
        chapter.compare("raw files", arms, {"wall": "ms per MB", "cpu": "ms per MB", "waits": "voluntary switches per MB"}, warmup=0)


def _read_all(path, megabytes: int, kilobytes: int, shuffled: bool, direct: bool, block: Block) -> dict[str, float]:
    size, places = kilobytes * _KB, list(range(0, megabytes << 20, kilobytes * _KB))
    if shuffled:
        random.Random(block.seed).shuffle(places)
    descriptor = _direct(path) if direct else os.open(path, os.O_RDONLY)
    buffer = mmap.mmap(-1, size)  # aligned, as direct I/O wants it
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        waits = _switches()
        wall, cpu = time.perf_counter(), time.process_time()
        for place in places:
            os.preadv(descriptor, [buffer], place)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        waits = _switches() - waits
    finally:
        buffer.close()
        os.close(descriptor)
    return {"wall": 1000 * wall / megabytes, "cpu": 1000 * cpu / megabytes, "waits": waits / megabytes}


def raw(chapter: Chapter, what: str, above: str, below: str) -> statistics.Interval | None:
    """Time of one way of reading the file over that of another; `what`: "wall" or "cpu"."""
    return chapter.ratio("raw files", what, above, below)


def waits(chapter: Chapter) -> pd.DataFrame | None:
    """How often a process waits for the disk per MB, by way of reading: the median over the blocks."""
    table = chapter.table("raw files", "waits")
    return None if table.empty else pd.DataFrame({"way": table.columns, "waits per MB": table.median().to_list()})


def sleeps(chapter: Chapter) -> pd.DataFrame:
    """Blocks of 8 kB read one by one past the operating system's cache, by whether the process went to sleep: slept, reads, microseconds (median).

    CannotMeasure where files can't be read that way.
    """
    megabytes, rows, size = chapter.parameters.megabytes, [], 8 * _KB
    with scratch(megabytes) as path:
        descriptor, buffer = _direct(path), mmap.mmap(-1, size)
        try:
            for place in range(0, megabytes << 20, size):
                before, started = _switches(), time.perf_counter()
                os.preadv(descriptor, [buffer], place)
                seconds = time.perf_counter() - started
                rows.append((_switches() > before, 1e6 * seconds))
        finally:
            buffer.close()
            os.close(descriptor)
    return pd.DataFrame(rows, columns=["slept", "microseconds"]).groupby("slept", as_index=False).agg(reads=("microseconds", "size"), microseconds=("microseconds", "median"))


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _direct(path) -> int:
    """The file, opened past the operating system's cache."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        raise CannotMeasure("direct I/O", f"Files in {path.parent.parent} can't be read past the operating system's cache ({error.strerror}). Name another place in PGRERUN_TMPDIR.") from None


# ---- PostgreSQL with nothing cached

SMALL_READS, LARGE_READS = "8kB", "128kB"
WAYS = {
    "sync, a page a read": ("sync", SMALL_READS), "sync, large reads": ("sync", LARGE_READS),
    "worker, a page a read": ("worker", SMALL_READS), "worker, large reads": ("worker", LARGE_READS),
}  # fmt: skip
SYNC_ONE, SYNC_LARGE, WORKER_ONE, WORKER_LARGE = WAYS
_SCAN = "SELECT count(*) FROM parts WHERE qoh < 50"
_SCATTERED = "SELECT count(weight) FROM parts WHERE qoh = 7"
UNITS = {"scan": "s", "scattered": "s", "reads": "reads of a scan", "switches": "voluntary switches of a scan", "together": "s", "alone": "s", "unprompted": "s"}
AHEAD = 16  # pages
CLAIMS = ("ston-041", "ston-042", "ston-043", "ston-044", "ston-050")


def asynchronous(chapter: Chapter) -> None:
    """A scan, and a bitmap scan of scattered pages, with data read past the operating system's cache, by PostgreSQL's ways of reading.

    Buffers are evicted before each, so that every page comes from the disk. Also: where each page is a read that is waited for, the
    reads and voluntary switches of the scan; where reads are large, the time of a part of such a scan alone and beside those of other clients.
    """
    clusters = {method: chapter.cluster(io_method=method, debug_io_direct="data") for method in dict.fromkeys(method for method, _ in WAYS.values())}
    for cluster in clusters.values():
        if cluster.version < 180000:
            raise CannotMeasure("PostgreSQL 18", "Asynchronous I/O came with PostgreSQL 18.")
        cluster.extension("pg_buffercache")
        Parts(chapter.parameters.tuples, wide=True).load(cluster)
        with cluster.connect() as connection:
            connection.execute("CREATE INDEX IF NOT EXISTS parts_qoh ON parts (qoh)")
    arms = [Arm(name, partial(_cold, chapter, name, clusters[method], limit)) for name, (method, limit) in WAYS.items()]
    chapter.compare("asynchronous", arms, UNITS, warmup=0)


def _cold(chapter: Chapter, way: str, cluster: Cluster, limit: str, block: Block) -> dict[str, float]:
    with cluster.connect() as connection:
        set_session(connection, {"io_combine_limit": limit, "max_parallel_workers_per_gather": 0, "effective_io_concurrency": AHEAD})
        _evict(connection)
        counts = _Counts(cluster, connection) if way == SYNC_ONE else None
        with clock.stopwatch() as scan:
            connection.execute(_SCAN)
        counted = counts.since() if counts else {}
        _evict(connection)
        connection.execute("SET enable_seqscan = off")
        with clock.stopwatch() as scattered:
            connection.execute(_SCATTERED)
        others = _unprompted(connection) if way == WORKER_LARGE else {}
        crowds = {"together": chapter.parameters.clients, "alone": 1} if limit == LARGE_READS else {}
        crowded = {name: _clients(cluster, connection, limit, clients, block) for name, clients in crowds.items()}
    return {"scan": scan.seconds, "scattered": scattered.seconds} | counted | others | crowded


def _unprompted(connection: psycopg.Connection) -> dict[str, float]:
    """The scattered pages when none is asked for before it is needed."""
    _evict(connection)
    connection.execute("SET effective_io_concurrency = 0")
    with clock.stopwatch() as watch:
        connection.execute(_SCATTERED)
    return {"unprompted": watch.seconds}


class _Counts:
    """Reads and voluntary switches from here on: of one backend where no other works."""

    def __init__(self, cluster: Cluster, connection: psycopg.Connection):
        self._cluster, self._connection = cluster, connection
        self._reads, self._usage = _reads(connection), processes.usage(cluster)

    def since(self) -> dict[str, float]:
        used = (processes.usage(self._cluster) - self._usage).processes
        return {"reads": _reads(self._connection) - self._reads, "switches": used.loc[used["role"] == "client backend", "switches"].max()}


def _evict(connection) -> None:
    connection.execute("SELECT pg_buffercache_evict_relation('parts'), pg_buffercache_evict_relation('parts_qoh')")


def _reads(connection) -> int:
    connection.execute("SELECT pg_stat_force_next_flush()")
    return connection.execute("SELECT coalesce(sum(reads), 0)::bigint FROM pg_stat_io WHERE object = 'relation'").fetchone()[0]


def _clients(cluster: Cluster, connection, limit: str, clients: int, block: Block) -> float:
    """Seconds of one scan when so many clients scan at once, each of a tenth of the relation of its own."""
    _evict(connection)
    pages = connection.execute("SELECT pg_relation_size('parts') / 8192").fetchone()[0]
    script = (
        f"SET io_combine_limit = '{limit}';\n\\set first (:client_id * {pages // 10}) % {pages}\n\\set last :first + {pages // 10}\n"
        "SELECT count(*) FROM parts WHERE ctid >= ('(' || :first || ',0)')::tid AND ctid < ('(' || :last || ',0)')::tid;\n"
    )
    done = pgbench.run(cluster, script, clients=clients, jobs=min(clients, 2), transactions=1, seed=block.seed)
    return done.latency_ms / 1000


def faster(chapter: Chapter, above: str, below: str, metric: str = "scan") -> statistics.Interval | None:
    """Time of one way over that of another."""
    return chapter.ratio("asynchronous", metric, above, below)


def asked_ahead(chapter: Chapter) -> statistics.Interval | None:
    """Time to fetch scattered pages when each is asked for as it is needed, over that with `AHEAD` asked for before."""
    unprompted, ahead = (chapter.table("asynchronous", name) for name in ("unprompted", "scattered"))
    return None if ahead.empty else statistics.ratio(unprompted[WORKER_LARGE], ahead[WORKER_LARGE], seed=chapter.parameters.seed)


def most_by_large_reads(chapter: Chapter) -> statistics.Interval | None:
    """The time halfway from a page a read to large asynchronous reads, over that of large reads alone: above 1 if these bring most of the gain."""
    table = chapter.table("asynchronous", "scan")
    if table.empty:
        return None
    return statistics.ratio((table[SYNC_ONE] + table[WORKER_LARGE]) / 2, table[SYNC_LARGE], seed=chapter.parameters.seed)


def switches_per_read(chapter: Chapter) -> statistics.Interval | None:
    """Voluntary switches of the backend over its reads, a page a read and each waited for."""
    switches, reads = (chapter.table("asynchronous", name) for name in ("switches", "reads"))
    return None if reads.empty else statistics.ratio(switches[SYNC_ONE].clip(lower=0.5), reads[SYNC_ONE], seed=chapter.parameters.seed)


def switch_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether reads approximate the switches: within a factor of two."""
    found = switches_per_read(chapter)
    return found and {"a read is no more than two switches": found.high <= 2, "a switch is no more than two reads": found.low >= 0.5}


def contention_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether a scan takes longer beside others, with either way of reading."""
    together, alone = (chapter.table("asynchronous", name) for name in ("together", "alone"))
    if alone.empty:
        return None
    ratios = {name: statistics.ratio(together[name], alone[name], seed=chapter.parameters.seed) for name in (SYNC_LARGE, WORKER_LARGE)}
    return {f"a scan takes longer beside others ({name.split(',')[0]})": ratio.low > 1 for name, ratio in ratios.items()}


# ---- a scan out of the kernel's cache


def copying(chapter: Chapter) -> None:
    """The kernel's share of a backend's CPU while it scans a relation that only the operating system has cached."""
    cluster = chapter.cluster(shared_buffers="1MB", **chapter.programs.synchronous_io)
    Parts(chapter.parameters.tuples, wide=True).load(cluster)
    chapter.compare("copying", [Arm("scan", partial(_copied, chapter, cluster))], {"kernel": "share of CPU"}, warmup=0)


def _copied(chapter: Chapter, cluster: Cluster, block: Block) -> dict[str, float]:
    with cluster.connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        before, until = processes.usage(cluster), time.perf_counter() + chapter.parameters.milliseconds / 1000
        while time.perf_counter() < until:
            connection.execute("SELECT count(*) FROM parts").fetchall()
        used = processes.usage(cluster) - before
    return {"kernel": used.kernel_share("client backend")}


def copied(chapter: Chapter) -> statistics.Interval | None:
    """That share."""
    return chapter.median("copying", "kernel", "scan")


# ---- keyed otherwise


def keyed(chapter: Chapter) -> None:
    """Query f by tuple substitution (a nested loop) on a B-tree and on a hash index: seconds."""
    server = chapter.server
    arms = [Arm(method, partial(_join, server, method)) for method in ("btree", "hash")]
    for method in ("btree", "hash"):
        Parts(wide=True).load(server, f"parts_{method}", method)
    chapter.compare("keyed", arms, {"seconds": "s"})


def _join(server, method: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        for off in ("hashjoin", "mergejoin", "material", "memoize"):
            connection.execute(f"SET enable_{off} = off")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        with clock.stopwatch() as watch:
            for _ in range(5):
                connection.execute(f"SELECT p.qoh, q.qoh FROM parts_{method} AS p, parts_{method} AS q WHERE p.pnum = q.pnum").fetchall()
    return {"seconds": watch.seconds}


def similar_facts(chapter: Chapter, structures: pd.DataFrame, margin: float = 0.25) -> dict[str, bool] | None:
    """Whether the two structures give similar results: pages read by the miniature, and the ratio of PostgreSQL's times, within a quarter."""
    ratio = chapter.ratio("keyed", "seconds", "btree", "hash")
    return ratio and structure_facts(structures, margin) | {"PostgreSQL takes about as long by B-tree as by hash index": statistics.within(ratio, margin)}
