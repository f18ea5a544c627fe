"""Experiment 1: a relation is read right after another was updated, in pools of several sizes.

Timed, and once more counted: dirty pages in the pool from pg_buffercache, pages that the reader
writes from EXPLAIN. Every pool is a server of its own. And who else writes: processes, a delay,
the WAL of an update, and what checkpoints do.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from pgrerun.chapters.explorations.relations import ONE_PROCESS, SQL, heap_pages, keyed
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import clock, counters, plans, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, Server, releases, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed, statistics

READ, UPDATED, SMALL_READ = "miltup1", "miltup2", "miltup0"
OTHERS = [f"other{number}" for number in range(7)]  # 1.4 pools, each without a ring
READERS = OTHERS[:5]  # together as many pages as miltup1

# What happens before the read; the statements are called so in sql/buffer_pool.sql.
CLEAN, DIRTY, CHECKPOINTED = (
    "after a read",
    "after an update",
    "after an update and a checkpoint",
)
AGAIN = "after a read, again"
#: No background writer: every write is the reader's or the checkpointer's.
QUIET = {"bgwriter_lru_maxpages": 0}


_ROUNDS = printed.derived("explorations_pool_rounds").iloc[0]
_SLIDES = [float(_ROUNDS[f"share_{pool}"]) for pool in ("mb128", "mb208", "mb500")]
# Sizes of the pool as multiples of the relation that is read, by that to two digits: the slides'
# three, exactly the relation's size, and four times that.
SHARES = {round(share, 2): share for share in sorted([*_SLIDES, 1.0, 4.0])}
EQUAL, ABOVE = 1.0, 4.0
TWICE = min(share for share in SHARES if share > 2)  # the slides' largest
BELOW = min(SHARES)


def buffers(tuples: int, pool: float) -> int:
    """Pages of a pool; the largest has a few more, so that a scan of the relation has no ring."""
    return round(SHARES[pool] * heap_pages(tuples)) + (64 if pool == ABOVE else 0)


def cluster(bed: Testbed, pool: float) -> Cluster:
    """A server whose pool has this multiple of the relation's pages, both relations loaded.

    A reader fetches each page itself, as in the slides' release: handed to I/O workers, the pages
    of a small ring take as long as two processes need to wake each other, however many it writes.
    """
    tuples = bed.parameters.tuples
    server = bed.cluster(
        shared_buffers=f"{8 * buffers(tuples, pool)}kB", **bed.programs.synchronous_io
    )
    _load(server, tuples)
    return server


def _load(server: Cluster, tuples: int) -> None:
    for order, relation in enumerate((READ, UPDATED), 1):
        keyed(server, relation, tuples, order)


def _load_small(server: Cluster, tuples: int) -> None:
    """Relations of a fifth of the others' pages, which are read without a ring."""
    keyed(server, SMALL_READ, round(tuples / 5))
    with server.connect() as connection:
        for other in OTHERS:
            if not loading.is_ours(connection, other):
                loading.make(
                    connection, other, SQL.text("buffer_pool.other_relation", relation=other)
                )
                # or its first reader sets hints, and makes its pages dirty
                SQL.run(connection, "buffer_pool.vacuum_other", relation=other)


def settle(connection: psycopg.Connection) -> None:
    """Free the space of the last update, write every dirty page, and scan by one process."""
    SQL.run(connection, "buffer_pool.settle")
    set_session(connection, ONE_PROCESS)


def prepare(server_or_connection: Server | psycopg.Connection, before: str) -> None:
    """Begin with a vacuum and a checkpoint, and do what comes before the read."""
    with loading.session(server_or_connection) as connection:
        settle(connection)
        SQL.run(connection, f"buffer_pool.{before.partition(',')[0].replace(' ', '_')}")


# ---- timed


@experiment(units={"time": "ms"}, needs=["restart"])
def reads_in_pools(bed: Testbed) -> Iterator[Row]:
    """Time of one read of miltup1 after miltup2 was read and after it was updated, in each pool.

    From memory, as the slides' 237 MB in a fifth of a second came. The print's slow-downs are a few
    per cent, and so is what one read differs by from the next: one pool after the other, so that
    what is compared runs side by side, and in all that decide a word four times the pairs. In two
    pools the read after a read runs twice, so that what two alike differ by is known as well.
    """
    servers = {pool: cluster(bed, pool) for pool in SHARES}

    def measure(block: Block, pool: float, before: str) -> dict[str, float]:
        with servers[pool].connect() as connection:
            return {"time": 1000 * _timed(connection)}

    for pool in SHARES:
        told = pool not in (BELOW, EQUAL, TWICE, ABOVE)
        yield from bed.compare(
            measure,
            {"pool": [pool], "before": [CLEAN, DIRTY, *[AGAIN] * (pool in (BELOW, EQUAL))]},
            prepare=lambda block, pool, before: prepare(servers[pool], before),
            pairs=bed.timed_pairs(int(bed.parameters.pairs) * (1 if told else 4)),
            warmup=0,  # each is vacuumed first
            fixed=True,
            tuples=bed.parameters.tuples,
        )


def _timed(connection: psycopg.Connection, relations: Sequence[str] = (READ,)) -> float:
    """Seconds to read miltup1 once, or each of these, without a new session's catalog lookups."""
    scans = [SQL.text("buffer_pool.scan", relation=one).encode() for one in relations]
    set_session(connection, ONE_PROCESS)
    for scan in scans:
        connection.execute(b"EXPLAIN " + scan)
    with clock.stopwatch() as watch:
        for scan in scans:
            connection.execute(scan).fetchone()
    return watch.seconds


@experiment(units={"time": "ms", "written": "pages"}, needs=["restart"])
def readers_without_a_ring(bed: Testbed) -> Iterator[Row]:
    """Time to read five small relations after an update of miltup2, and once it is checkpointed.

    In pools as large as the relation and above twice that. Together the five have its pages; each
    is too small for a ring, so that its reader takes buffers from all of the pool, where what the
    update left has to be written first. After the checkpoint the same pages lie in the pool, and
    none is dirty. Each update begins with an empty pool, which has none of the five. `written` are
    pages that client backends write meanwhile.
    """
    tuples = bed.parameters.tuples
    servers = {pool: cluster(bed, pool) for pool in (EQUAL, TWICE, ABOVE)}
    for server in servers.values():
        _load_small(server, tuples)
        prepare(server, DIRTY)  # from now on each update finds the free space of one

    def begin(block: Block, pool: float, before: str) -> None:
        with servers[pool].connect() as connection:
            settle(connection)
        servers[pool].restart()
        with servers[pool].connect() as connection:
            SQL.run(connection, f"buffer_pool.{before.replace(' ', '_')}")

    def measure(block: Block, pool: float, before: str) -> dict[str, float]:
        server = servers[pool]
        with (
            counters.Counters(server) as counter,
            server.connect() as connection,
            counter.measured(connection) as delta,
        ):
            seconds = _timed(connection, READERS)
        return {"time": 1000 * seconds, "written": _written(delta)["client_backend"]}

    for pool in servers:  # side by side is what is compared; the first pool is told
        yield from bed.compare(
            measure,
            {"pool": [pool], "before": [CHECKPOINTED, DIRTY]},
            prepare=begin,
            pairs=bed.timed_pairs(
                statistics.ENOUGH if pool == EQUAL else int(bed.parameters.pairs)
            ),
            warmup=0,  # each begins with an empty pool
            fixed=True,
            tuples=tuples,
        )


RATE = 8000  # pages per second, read or written


@experiment(
    units={"time": "ms", "reads": "requests", "writes": "requests"},
    needs=["restart"],
)
def reads_on_slow_disk(bed: Testbed) -> Iterator[Row]:
    """The same read where each page costs time, read or written, page by page as in release 11.

    Only what the reader asks the disk for takes time: the update before it runs at full speed.
    """
    tuples = bed.parameters.slowed_tuples
    on_disk = {
        pool: bed.cluster_on_slow_disk(
            shared_buffers=f"{8 * buffers(tuples, pool)}kB",
            fsync="off",
            **QUIET,
            **bed.programs.synchronous_io,
        )
        for pool in SHARES
    }
    for server, _ in on_disk.values():
        _load(server, tuples)

    def measure(block: Block, pool: float, before: str) -> dict[str, float]:
        server, disk = on_disk[pool]
        with server.connect() as connection:
            if releases.knows(server.version, "io_combine_limit"):
                connection.execute("SET io_combine_limit = 1")
            with disk.serving(Disk(1 / RATE, 1 / RATE)) as stretch:
                seconds = _timed(connection)
        asked = stretch.counts()
        return {
            "time": 1000 * seconds,
            "reads": asked.reads.requests,
            "writes": asked.writes.requests,
        }

    yield from bed.compare(
        measure,
        {"pool": list(SHARES), "before": [CLEAN, DIRTY]},
        prepare=lambda block, pool, before: prepare(on_disk[pool][0], before),
        pairs=bed.timed_pairs(statistics.ENOUGH),
        warmup=0,
        tuples=tuples,
    )


# ---- counted

PAGES = dict.fromkeys(("read", "hit", "written", "dirty_before", "dirty_after", "kept"), "pages")


@experiment(units=PAGES, needs=["restart"])
def reader_pages(bed: Testbed) -> Iterator[Row]:
    """Pages that a reader reads, finds and writes, by pool and by what came before.

    And those of miltup2 that are dirty in the pool before and after it, and what is left there of
    miltup1. The reader of miltup1 gets a ring of buffers, as a scan of more than a quarter of the
    pool does. In a pool as large as miltup1 there is another one, whose relation has a fifth of its
    pages and isn't in the pool: that one gets none. There is no background writer, so that the
    counts are the same every time.
    """
    for pool in SHARES:
        yield from counted_reads(bed, pool, READ, ())
    _load_small(cluster(bed, EQUAL), bed.parameters.tuples)
    yield from counted_reads(bed, EQUAL, SMALL_READ, 2 * OTHERS)


def counted_reads(
    bed: Testbed, pool: float, relation: str, displacing: Sequence[str]
) -> Iterator[Row]:
    """Rows of one reader in one pool; `displacing` are read first, to take its pages' place."""
    server = cluster(bed, pool)
    server.extension("pg_buffercache")
    with server.reloaded(**QUIET), server.connect() as connection, server.connect() as probe:
        dirty_pages(probe), look(probe, "buffer_pool.pages_left")  # planned before they count
        for before in (CLEAN, DIRTY, CHECKPOINTED):
            for other in displacing:
                SQL.run(connection, "buffer_pool.scan", relation=other)
            prepare(connection, before)
            dirty_before = dirty_pages(probe)
            pages = explained_read(connection, relation).buffers or {}
            [kept] = look(probe, "buffer_pool.pages_left")
            yield {
                "pool": pool,
                "ring": relation == READ,
                "before": before,
                "dirty_before": dirty_before,
                **{what: pages[f"shared_{what}"] for what in ("read", "hit", "written")},
                "dirty_after": dirty_pages(probe),
                "kept": kept,
            }


def explained_read(connection: psycopg.Connection, relation: str, wal: bool = False) -> plans.Plan:
    """The plan of one read of a relation, with its pages and its time."""
    scan = SQL.text("buffer_pool.scan", relation=relation)
    return plans.explain(connection, scan, execute=True, wal=wal)


def look(connection: psycopg.Connection, name: str, **values: str) -> tuple[int, ...]:
    """One row of a query of pg_buffercache.

    Prepared: from the second look on planning reads no catalog, which would displace pages.
    """
    return connection.execute(SQL.text(name, **values).encode(), prepare=True).fetchall()[0]


def dirty_pages(connection: psycopg.Connection) -> int:
    """Dirty pages of miltup2 and its key in the pool."""
    return look(connection, "buffer_pool.dirty_pages")[0]


# ---- who writes, and when: counted in pg_stat_io (before PostgreSQL 16 in pg_stat_bgwriter)

WRITERS = ("client backend", "background writer", "checkpointer")
WRITTEN = {writer.replace(" ", "_"): "pages" for writer in WRITERS}


def _written(delta: counters.Delta) -> dict[str, int]:
    return {column: int(delta.writes.get(who, 0)) for column, who in zip(WRITTEN, WRITERS)}


BACKGROUND_WRITER = {"as by default": {}, "off": QUIET}


@experiment(units=WRITTEN, needs=["restart"])
def writers(bed: Testbed, seconds: float = 0.7) -> Iterator[Row]:
    """Pages written during updates in a small pool and a checkpoint, by kind of process.

    For so many `seconds`, in which the background writer makes three rounds.
    """
    server = cluster(bed, BELOW)
    with counters.Counters(server) as counter:
        for words, settings in BACKGROUND_WRITER.items():
            with server.reloaded(**settings), server.connect() as connection:
                settle(connection)
                with counter.measured(connection) as delta:
                    end = time.perf_counter() + seconds
                    while time.perf_counter() < end:
                        SQL.run(connection, "buffer_pool.after_an_update")
                        SQL.run(connection, "buffer_pool.vacuum")
                    # nobody else asks for a checkpoint, and none is due
                    SQL.run(connection, "buffer_pool.checkpoint")
                yield {"bgwriter": words, **_written(delta)}


AT_ONCE, WAITED, AFTER_CHECKPOINT = "update", "update, wait", "update, checkpoint"
# Once a checkpoint is over a reader has nothing to write: what it takes then is what a delay can
# spare it at most.
WAITS = {"as by default": (AT_ONCE, WAITED, AFTER_CHECKPOINT), "off": (AT_ONCE, WAITED)}


@experiment(
    units={"time": "ms", "dirty": "pages", "reader": "pages", "meanwhile": "pages", **WRITTEN},
    needs=["restart"],
)
def waiting(bed: Testbed) -> Iterator[Row]:
    """A read of small relations at once after an update, after a delay and after a checkpoint.

    They are those that are read without a ring, for whom there is something to wait for. With
    PostgreSQL's own checkpoint_timeout, in a pool as large as the updated relation, with the
    background writer and without, so that nobody but the checkpointer can spare the reader a page.
    `time` is the reads' by EXPLAIN (ANALYZE, BUFFERS), as in print, and `reader` what they write;
    `dirty` are pages of the updated relation when it comes, and `meanwhile` what the checkpointer
    writes between the end of the update and that of the read. The others count from the update on.
    Each begins with the relation as it was loaded, right after a CHECKPOINT. By its log an update
    of the slides' relation makes a checkpoint due. With the background writer, where time decides,
    there are more rounds.
    """
    server = cluster(bed, EQUAL)
    _load_small(server, bed.parameters.tuples)
    server.extension("pg_buffercache")
    delays = {WAITED: bed.parameters.wait}
    with (
        counters.Counters(server) as counter,
        server.connect() as connection,
        server.connect() as probe,
    ):
        dirty_pages(probe)  # planned before it counts

        def measure(block: Block, bgwriter: str, event: str, seconds: float) -> dict[str, float]:
            with server.reloaded(checkpoint_timeout="5min", **BACKGROUND_WRITER[bgwriter]):
                # or a vacuum's free space decides which pages an update makes dirty, and when
                SQL.run(connection, "buffer_pool.rewrite")
                settle(connection)
                with counter.measured(connection) as updating:
                    SQL.run(connection, "buffer_pool.after_an_update")
                    if event == AFTER_CHECKPOINT:
                        SQL.run(connection, "buffer_pool.checkpoint")
                with counter.measured(connection, probe) as later:
                    time.sleep(seconds)
                    found = {"dirty": dirty_pages(probe), **_read_by_readers(connection)}
            first, then = _written(updating), _written(later)
            found["meanwhile"] = then["checkpointer"]
            return found | {who: first[who] + then[who] for who in WRITTEN}

        for words, events in WAITS.items():
            yield from bed.compare(
                measure,
                [
                    {"bgwriter": words, "event": one, "seconds": delays.get(one, 0)}
                    for one in events
                ],
                pairs=bed.timed_pairs(0 if AFTER_CHECKPOINT in events else statistics.ENOUGH),
                warmup=0,
                fixed=AFTER_CHECKPOINT not in events,
                tuples=bed.parameters.tuples,
            )


def _read_by_readers(connection: psycopg.Connection) -> dict[str, float]:
    """Milliseconds in which READERS are read, and pages that their reader writes."""
    found = [explained_read(connection, relation) for relation in READERS]
    return {
        "time": sum(plan.execution_ms or 0 for plan in found),
        "reader": sum((plan.buffers or {})["shared_written"] for plan in found),
    }


@experiment(
    units={
        "pages": "page accesses",
        "dirtied": "pages",
        "wal_records": "records",
        "full_page_images": "pages",
        "wal_bytes": "bytes",
    }
)
def first_reader(bed: Testbed) -> Iterator[Row]:
    """Three reads of the updated relation after an update and a checkpoint."""
    server = cluster(bed, ABOVE)
    releases.require(server.version, "EXPLAIN (WAL)")
    with server.connect() as connection:
        prepare(connection, CHECKPOINTED)
        for number in (1, 2, 3):
            plan = explained_read(connection, UPDATED, wal=True)
            yield {
                "reader": number,
                "pages": plan.page_accesses,
                "dirtied": (plan.buffers or {})["shared_dirtied"],
                "wal_records": plan.properties.get("WAL Records", 0),
                "full_page_images": plan.properties.get("WAL FPI", 0),
                "wal_bytes": plan.properties.get("WAL Bytes", 0),
            }


@experiment(units={"bytes": "bytes/tuple"})
def wal_of_an_update(bed: Testbed) -> Iterator[Row]:
    """WAL of an update of every tuple, right after a checkpoint and without one before."""
    with cluster(bed, ABOVE).connect() as connection:
        settle(connection)
        for after_checkpoint in (True, False):
            with wal.written(connection) as written:
                SQL.run(connection, "buffer_pool.after_an_update")
            yield {
                "after_checkpoint": after_checkpoint,
                "bytes": written.bytes / bed.parameters.tuples,
            }
            SQL.run(connection, "buffer_pool.vacuum")


# ---- what starts a checkpoint

#: Events, and the statements or the method of a server that make each happen.
EVENTS: dict[str, str | Callable[[Cluster], None]] = {
    "CHECKPOINT": "checkpoint",
    "CREATE DATABASE, copying files": "create_database_copying_files",
    "CREATE DATABASE, as by default": "create_database",
    "DROP DATABASE": "drop_database",
    "the start of a base backup": "base_backup",
    "more WAL than max_wal_size": "write_wal",
    "shutdown": Cluster.restart,
    "the end of a recovery": Cluster.crash,
    "DROP TABLE of many pages": "drop_table",
}


@experiment(units={"checkpoints": "checkpoints", "reason": "text"})
def checkpoint_triggers(bed: Testbed) -> Iterator[Row]:
    """Every kind of event that can be made to happen here and may start a checkpoint.

    The reason is what the server's log gives.
    """
    server = cluster(bed, EQUAL)
    for event, happen in EVENTS.items():
        start = len(server.log())
        try:
            _happen(server, happen)
        except psycopg.errors.SyntaxError:  # a release that doesn't know the option
            continue
        time.sleep(0.03)  # the log's last line
        reasons = re.findall(r"(?:checkpoint|restartpoint) starting: (.*)", server.log()[start:])
        yield {
            "event": event,
            "checkpoints": len(reasons),
            "reason": ", ".join(dict.fromkeys(reasons)) or "none",
        }


def _happen(server: Cluster, happen: str | Callable[[Cluster], None]) -> None:
    if callable(happen):
        happen(server)
        server.start()  # which does nothing to one that runs
        return
    if happen == "base_backup" and not releases.has(server.version, "pg_backup_start"):
        happen = "base_backup_before_15"
    settings = {"max_wal_size": "32MB"} if happen == "write_wal" else {}
    with server.reloaded(**settings), server.connect() as connection:
        SQL.run(connection, f"checkpoints.{happen}")
        if happen == "write_wal":
            clock.until(lambda: "checkpoint starting: wal" in server.log(), 10, 0.05)
