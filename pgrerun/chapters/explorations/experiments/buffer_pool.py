"""Experiment 1: a relation is read right after another was updated, in pools of several sizes.

Timed, and once more counted: dirty pages in the pool from pg_buffercache, pages that the reader
writes from EXPLAIN. Every pool is a server of its own. And who else writes: processes, a delay,
the WAL of an update, and what checkpoints do.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.relations import ONE_PROCESS, SQL
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, counters, plans, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases, set_session
from pgrerun.record import statistics
from pgrerun.record.printed.explorations import POOLS, TUPLES, heap_pages, shares

READ, UPDATED = "miltup1", "miltup2"
SWEEP = "pools"  # the reads that are timed in memory

# What happens before the read, and the statements that do it.
CLEAN, DIRTY, CHECKPOINTED = "after a read", "after an update", "update, checkpoint"
VARIANTS = {
    CLEAN: "buffer_pool.after_a_read",
    DIRTY: "buffer_pool.after_an_update",
    CHECKPOINTED: "buffer_pool.after_an_update_and_a_checkpoint",
}

# The readers: a scan of more than a quarter of the pool gets a ring of buffers.
THROUGH, WITHOUT = "through a ring", "without a ring"
READERS = {THROUGH: READ, WITHOUT: "miltup0"}
OTHERS = [f"other{number}" for number in range(7)]  # 1.4 pools, each without a ring

BELOW, EQUAL, ABOVE = "0.54 (128 MB)", "1.00", "4.00"
LABELS = {pool: f"{quantity} MB" for pool, quantity in zip(POOLS, (128, 208, 500), strict=True)}
#: Of release 11, in pages: 256 kB for every bulk read (src/backend/storage/buffer/README and
#: freelist.c). From release 18 on it grows with the pool.
RING_OF_11 = 256 // 8
#: No background writer: every write is the reader's or the checkpointer's.
QUIET = {"bgwriter_lru_maxpages": 0}


# ---- pools


def printed_pool(pool: str) -> str:
    """The label of one of the slides' pools ("mb128", "mb208", "mb500")."""
    return f"{shares()[pool]:.2f} ({LABELS[pool]})"


#: Sizes of the pool by label, ascending, as multiples of the relation that is read: the slides'
#: three, exactly the relation's size, and four times that.
SHARES = {printed_pool(pool): share for pool, share in shares().items()}
SHARES = dict(sorted((SHARES | {EQUAL: 1.0, ABOVE: 4.0}).items(), key=itemgetter(1)))


def timed(chapter: Chapter, at_least: int = 3) -> list[str]:
    """The pools in which the read is timed: the slides' ends and the relation's size at least.

    With `at_least` of 4 those in which pages are counted: also four times the relation.
    """
    number = max(at_least, chapter.parameters.timed_pools)
    telling = [BELOW, EQUAL, printed_pool("mb500"), ABOVE, printed_pool("mb208")]
    return [pool for pool in SHARES if pool in telling[:number]]


def buffers(tuples: int, pool: str) -> int:
    """Pages of a pool; the largest has a few more, so that a scan of the relation has no ring."""
    return round(SHARES[pool] * heap_pages(tuples)) + (64 if pool == ABOVE else 0)


def cluster(chapter: Chapter, pool: str, tuples: int = 0) -> Cluster:
    """A server whose pool has this multiple of the relation's pages, both relations loaded.

    `tuples` are those of a relation; by default the parameter.
    """
    tuples = tuples or chapter.parameters.tuples
    pages = buffers(tuples, pool)
    # a reader fetches each page itself, as in the slides' release: handed to I/O workers, the pages
    # of a small ring take as long as two processes need to wake each other, however many it writes
    own_reads = chapter.programs.synchronous_io
    server = chapter.cluster(shared_buffers=f"{8 * pages}kB", **own_reads)
    with server.connect() as connection:
        for order, relation in enumerate((READ, UPDATED), 1):
            if not loading.is_ours(connection, relation):
                relations.keyed(connection, relation, tuples, order)
    return server


def settle(connection: psycopg.Connection) -> None:
    """Free the space of the last update, write every dirty page, and scan by one process."""
    SQL.run(connection, "buffer_pool.settle")
    set_session(connection, ONE_PROCESS)


def prepare(connection: psycopg.Connection, variant: str, displacing: Sequence[str] = ()) -> None:
    """Begin with a vacuum and a checkpoint, and do what comes before the read.

    Before that `displacing`, relations small enough for no ring, take the place of the one that
    will be read.
    """
    for other in 2 * tuple(displacing):
        SQL.run(connection, "buffer_pool.scan", relation=other)
    settle(connection)
    SQL.run(connection, VARIANTS[variant])


# ---- timed

BY_TIME = ("expl-002", "expl-003", "expl-004", "expl-009")


@experiment(claims=BY_TIME, needs=["restart"])
def sweep(chapter: Chapter) -> None:
    """Time to read miltup1 after reading miltup2 and after updating it, in several pools.

    From memory, as the slides' 237 MB in a fifth of a second came. What is written is a ring of
    pages, of a small relation a larger share than of theirs: with fewer tuples what is claimed of
    the slow-down is set aside.
    """
    variants = []
    for pool in timed(chapter):
        server = cluster(chapter, pool)
        for variant in (CLEAN, DIRTY):
            read, before = partial(_read, server), partial(_prepared, server, variant)
            variants.append(Variant(f"{pool}: {variant}", read, before))
    pairs = max(statistics.ENOUGH, 2 * chapter.parameters.pairs // 3)
    units = {"time": "ms"}
    chapter.compare(SWEEP, variants, units, pairs=pairs, warmup=0)  # each is vacuumed first
    _require_size(chapter, "the slow-down's size depends on the relation's", BY_TIME)


def _require_size(
    chapter: Chapter, why: str, claimed: Sequence[str], parameter: str = "tuples"
) -> None:
    """Set claims aside which are about relations of the slides' size, if the run's are smaller."""
    if (tuples := getattr(chapter.parameters, parameter)) < TUPLES["miltup"]:
        reason = (
            f"{why}, which has {TUPLES['miltup']:,} tuples on the slides and {tuples:,} in this run"
        )
        chapter.set_aside(CannotMeasure(f"{parameter} = {TUPLES['miltup']}", reason), claimed)


def _prepared(server: Cluster, variant: str, block: Block) -> None:
    with server.connect() as connection:
        prepare(connection, variant)


def _read(server: Cluster, block: Block) -> dict[str, float]:
    """Time one read of miltup1 in a session of its own."""
    scan = SQL.text("buffer_pool.scan", relation=READ).encode()
    with server.connect() as connection:
        set_session(connection, ONE_PROCESS)
        connection.execute(b"EXPLAIN " + scan)  # a new session's catalog lookups aren't timed
        with clock.stopwatch() as watch:
            connection.execute(scan).fetchone()
    return {"time": 1000 * watch.seconds}


# ---- counted


@experiment(claims=["expl-001", "expl-010"], needs=["restart"])
def written(chapter: Chapter, sizes: Sequence[str] = ()) -> pd.DataFrame:
    """Pages that a reader of miltup1 writes after each kind of preparation, in several pools.

    Columns: pool, variant, read, hit and written (pages, of the reader's own), dirty_before and
    dirty_after (pages of miltup2 in the pool), left (pages of miltup1 in the pool afterwards:
    those of its ring, if it had one). `sizes` are labels of `SHARES`; by default at least four.
    There is no background writer, so that the counts are the same every time.
    """
    rows = []
    for pool in sizes or timed(chapter, at_least=4):
        server = cluster(chapter, pool)
        server.extension("pg_buffercache")
        with server.reloaded(**QUIET), server.connect() as connection, server.connect() as probe:
            dirty_pages(probe), look(probe, "buffer_pool.pages_left")  # planned before they count
            for variant in VARIANTS:
                prepare(connection, variant)
                before = dirty_pages(probe)
                row = {"pool": pool, "variant": variant, **reads(connection, READ)}
                after = dirty_pages(probe)
                [left] = look(probe, "buffer_pool.pages_left")
                rows.append(row | {"dirty_before": before, "dirty_after": after, "left": left})
    return pd.DataFrame(rows)


def reads(connection: psycopg.Connection, relation: str) -> dict[str, int]:
    """Pages of one read of a relation: read, hit (found in the pool) and written."""
    scan = SQL.text("buffer_pool.scan", relation=relation)
    pages = plans.explain(connection, scan, execute=True).buffers
    return {what: pages[f"shared_{what}"] for what in ("read", "hit", "written")}


def look(connection: psycopg.Connection, name: str, **values: str) -> tuple:
    """One row of a query of pg_buffercache.

    Prepared: from the second look on planning reads no catalog, which would displace pages.
    """
    return connection.execute(SQL.text(name, **values).encode(), prepare=True).fetchone()


def dirty_pages(connection: psycopg.Connection) -> int:
    """Dirty pages of miltup2 and its key in the pool."""
    return look(connection, "buffer_pool.dirty_pages")[0]


# ---- a reader without a ring


@experiment()
def beside_the_ring(chapter: Chapter) -> pd.DataFrame:
    """The same update, and two readers: one through a ring, one whose relation is too small.

    That one's relation has a fifth of the pool's pages and isn't in the pool; miltup1 is as large
    as the pool. Columns: reader (of `READERS`), variant, read, written (pages).
    """
    server, small = cluster(chapter, EQUAL), READERS[WITHOUT]
    rows = []
    with server.reloaded(**QUIET), server.connect() as connection:
        if not loading.is_ours(connection, small):
            relations.keyed(connection, small, round(chapter.parameters.tuples / 5))
            for other in OTHERS:
                SQL.run(connection, "buffer_pool.other_relation", relation=other)
        for reader, relation in READERS.items():
            for variant in VARIANTS:
                prepare(connection, variant, displacing=OTHERS if relation == small else ())
                rows.append({"reader": reader, "variant": variant, **reads(connection, relation)})
    return pd.DataFrame(rows).drop(columns="hit")


# ---- who writes, and when: counted in pg_stat_io (before PostgreSQL 16 in pg_stat_bgwriter)

WRITERS = ("client backend", "background writer", "checkpointer")
WAITED = "update, wait"


@experiment(claims=["expl-006"])
def writers(chapter: Chapter, seconds: float = 0.7) -> pd.DataFrame:
    """Pages written during updates in a small pool and a checkpoint, by kind of process.

    Columns: background_writer ("as by default", "off"), and one for each of `WRITERS`.
    """
    server, rows = cluster(chapter, BELOW), []
    with counters.Counters(server) as counter:
        for words, settings in (("as by default", {}), ("off", QUIET)):
            with server.reloaded(**settings), server.connect() as connection:
                settle(connection)
                with counter.measured(connection) as delta:
                    end = time.perf_counter() + seconds  # three rounds of the background writer
                    while time.perf_counter() < end:
                        SQL.run(connection, VARIANTS[DIRTY])
                        SQL.run(connection, "buffer_pool.vacuum")
                    # nobody else asks for a checkpoint, and none is due
                    SQL.run(connection, "buffer_pool.checkpoint")
                wrote = {writer: int(delta.writes.get(writer, 0)) for writer in WRITERS}
                rows.append({"background_writer": words, **wrote})
    return pd.DataFrame(rows)


@experiment(claims=["expl-008"])
def waiting(chapter: Chapter) -> pd.DataFrame:
    """Dirty pages of the updated relation at once, after a delay and after a checkpoint.

    With PostgreSQL's own checkpoint_timeout, in a pool as large as the relation. Columns: seconds
    (since the update), event, dirty (pages when the reader comes), checkpointer and
    background_writer (pages written from the update on), reader (pages that the reader of miltup1
    writes). The experiment begins anew for each event.

    By its log an update of the slides' relation makes a checkpoint due, and one of fewer tuples
    doesn't, so that nothing is said about the checkpointer then.
    """
    why = "whether a checkpoint is due depends on the relation"
    _require_size(chapter, why, ["expl-008"], "waited_tuples")
    server, rows = cluster(chapter, EQUAL, chapter.parameters.waited_tuples), []
    server.extension("pg_buffercache")
    with (
        server.reloaded(checkpoint_timeout="5min"),
        counters.Counters(server) as counter,
        server.connect() as connection,
        server.connect() as probe,
    ):
        dirty_pages(probe)  # planned before it counts
        for event in (DIRTY, WAITED, CHECKPOINTED):
            settle(connection)
            seconds = chapter.parameters.wait if event == WAITED else 0
            with counter.measured(connection, probe) as delta:
                SQL.run(connection, VARIANTS.get(event, VARIANTS[DIRTY]))
                time.sleep(seconds)
                row = {"seconds": seconds, "event": event, "dirty": dirty_pages(probe)}
                row["reader"] = reads(connection, READ)["written"]
            for writer in WRITERS[1:]:
                row[writer.replace(" ", "_")] = int(delta.writes.get(writer, 0))
            rows.append(row)
    return pd.DataFrame(rows)


@experiment()
def first_reader(chapter: Chapter) -> pd.DataFrame:
    """Three reads of the updated relation after an update and a checkpoint.

    Columns: read (number), pages, dirtied (pages), wal_records, wal_fpi (full page images),
    wal_bytes.
    """
    server, rows = cluster(chapter, ABOVE), []
    releases.require(server.version, "EXPLAIN (WAL)")
    scan = SQL.text("buffer_pool.scan", relation=UPDATED)
    with server.connect() as connection:
        settle(connection)
        SQL.run(connection, VARIANTS[CHECKPOINTED])
        for number in (1, 2, 3):
            plan = plans.explain(connection, scan, execute=True, wal=True)
            written = [
                plan.properties.get(f"WAL {what}", 0) for what in ("Records", "FPI", "Bytes")
            ]
            rows.append((number, plan.page_accesses, plan.buffers["shared_dirtied"], *written))
    columns = ["read", "pages", "dirtied", "wal_records", "wal_fpi", "wal_bytes"]
    return pd.DataFrame(rows, columns=columns)


@experiment()
def wal_of_an_update(chapter: Chapter) -> pd.DataFrame:
    """WAL of an update of every tuple, right after a checkpoint and without one before.

    Columns: update, bytes per tuple.
    """
    server, rows = cluster(chapter, ABOVE), []
    with server.connect() as connection:
        settle(connection)
        for when in ("right after a checkpoint", "later"):
            with wal.written(connection) as written:
                SQL.run(connection, VARIANTS[DIRTY])
            rows.append((when, written.bytes / chapter.parameters.tuples))
            SQL.run(connection, "buffer_pool.vacuum")
    return pd.DataFrame(rows, columns=["update", "bytes per tuple"])


# ---- what starts a checkpoint


#: Events, and the statements or the method of a server that make each happen.
EVENTS = {
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


@experiment()
def triggers(chapter: Chapter) -> pd.DataFrame:
    """Every kind of event that can be made to happen here and may start a checkpoint.

    Columns: event (of `EVENTS`), checkpoints, reason (as the server's log gives it).
    """
    server, rows = cluster(chapter, EQUAL), []
    for event, happen in EVENTS.items():
        start = len(server.log())
        try:
            _happen(server, happen)
        except psycopg.errors.SyntaxError:  # a release that doesn't know the option
            continue
        time.sleep(0.03)  # the log's last line
        reasons = re.findall(r"(?:checkpoint|restartpoint) starting: (.*)", server.log()[start:])
        rows.append((event, len(reasons), ", ".join(dict.fromkeys(reasons)) or "none"))
    return pd.DataFrame(rows, columns=["event", "checkpoints", "reason"])


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
        deadline = time.monotonic() + 10 if happen == "write_wal" else 0
        while "checkpoint starting: wal" not in server.log() and time.monotonic() < deadline:
            time.sleep(0.05)
