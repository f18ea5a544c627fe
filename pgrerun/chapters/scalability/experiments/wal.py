"""The WAL and the commit log (CLOG): what is written, asked for, inserted and flushed."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    CROWD,
    SMALL_POOL,
    SQL,
    THROUGHPUT,
    TPCB,
    Load,
    by_clients,
    loaded,
    processors,
    second_server,
    server,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, sessions, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases

# ---- the WAL

COPIED, INSERTED = "COPY", "one INSERT for each row"
ROWS = 5_000


@experiment(claims=["haas-023"])
def copy(chapter: Chapter, tuples: int = ROWS) -> pd.DataFrame:
    """Bytes of WAL for the same rows, by COPY and by single INSERTs in one transaction.

    Columns: way, bytes, bytes_per_row.
    """
    rows = []
    with server(chapter).connect() as connection:
        for way in (COPIED, INSERTED):
            with connection.transaction():
                loading.replace(connection, "scaling_copied", SQL.text("wal.copied"))
            with wal.written(connection) as log:
                if way == COPIED:
                    with connection.cursor().copy(SQL.text("wal.copy").rstrip(";")) as copied:
                        for number in range(1, tuples + 1):
                            copied.write_row((number, "some words"))
                else:
                    SQL.run(connection, "wal.single_inserts", rows=tuples)
            rows.append((way, log.bytes, log.bytes / tuples))
    return pd.DataFrame(rows, columns=["way", "bytes", "bytes_per_row"])


RECORDS = 20_000


@experiment(claims=["haas-081"])
def insertion(chapter: Chapter, records: int = RECORDS) -> None:
    """Records inserted into the WAL per second, by one session and by one per processor."""
    tested = server(chapter)
    statement = SQL.text("wal.insert_records", records=records)

    def measure(number: int, block: Block) -> dict[str, float]:
        seconds = sessions.at_once(tested, [statement] * number)
        return {"records": number * records / max(seconds)}

    variants = [Variant(by_clients(number), partial(measure, number)) for number in (1, several())]
    chapter.compare("insertion", variants, {"records": "records/s"}, warmup=0)


def several() -> int:
    """Sessions that insert together: one per processor, two at least."""
    return max(2, processors())


AFTER, LATER = "right after a checkpoint", "later"


@experiment(claims=["haas-081"])
def checkpointed(chapter: Chapter) -> None:
    """Throughput and WAL per transaction right after a checkpoint, and later.

    The same transactions each time, drawn with the block's seed: `LATER` they run once before they
    are measured, so that every page they change has been logged in full since the checkpoint.
    """
    tested = loaded(chapter)
    writers = Load(chapter, tested, TPCB, CROWD, chapter.parameters.transactions / 12)

    def measure(block: Block) -> dict[str, float]:
        with tested.connect() as connection, wal.written(connection) as log:
            done = writers.run(block.seed)
        return {"throughput": done.tps, "log": log.bytes / done.transactions}

    def checkpoint(block: Block) -> None:
        with tested.connect() as connection:
            connection.execute("CHECKPOINT")

    variants = [Variant(AFTER, measure, checkpoint), Variant(LATER, measure, writers.throughput)]
    with sessions.configured(tested, synchronous_commit="off"):
        units = THROUGHPUT | {"log": "bytes/transaction"}
        chapter.compare("checkpointed", variants, units, warmup=0)


# ---- the commit log

RESPONSIVE, SLUGGISH = "as it comes", "sleeps ten seconds"
WAL_WRITERS = {
    RESPONSIVE: {},
    SLUGGISH: {"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"},
}


@experiment(claims=["haas-018"])
def wal_writer(chapter: Chapter) -> None:
    """Asynchronous commits with the WAL writer as it comes, and with one that sleeps long."""
    tested = loaded(chapter)

    def measure(settings: dict[str, str], block: Block) -> dict[str, float]:
        writers = Load(chapter, tested, TPCB, CROWD, chapter.parameters.transactions / 12)
        with (
            tested.reloaded(**settings) if settings else nullcontext(),
            tested.connect() as watch,
        ):
            before = _lookups(watch)
            done = writers.run(block.seed)
            time.sleep(0.02)  # backends that ended have handed in their counts
            looked_up = _lookups(watch) - before
        return {"throughput": done.tps, "lookups": looked_up / done.transactions}

    variants = [Variant(name, partial(measure, settings)) for name, settings in WAL_WRITERS.items()]
    with sessions.configured(tested, synchronous_commit="off"):
        units = THROUGHPUT | {"lookups": "per transaction"}
        chapter.compare("wal writer", variants, units, warmup=0)


def _lookups(connection: psycopg.Connection) -> int:
    """Pages of the commit log that were asked for so far."""
    counters.force_flush(connection)
    return int(SQL.run(connection, "commit_log.lookups").fetchone()[0])


LARGE_POOL = "1GB"


@experiment(claims=["haas-019"])
def buffers(chapter: Chapter) -> pd.DataFrame:
    """Memory for the commit log by the size of the buffer pool: shared_buffers, kilobytes."""
    releases.require_settings(server(chapter).version, ["transaction_buffers"])
    rows = []
    for pool in (SMALL_POOL, "", LARGE_POOL):
        tested = second_server(chapter, shared_buffers=pool) if pool else server(chapter)
        with tested.connect() as connection:
            rows.append(SQL.run(connection, "commit_log.buffers").fetchone())
    return pd.DataFrame(rows, columns=["shared_buffers", "kilobytes"])


TUPLES = 2_000


@experiment(claims=["haas-021"])
def index_scans(chapter: Chapter, tuples: int = TUPLES) -> pd.DataFrame:
    """How often three index scans ask the commit log for tuples of as many transactions.

    The first has a snapshot from before them. In 9.1 it asked for each whether it was dead, in
    order to mark its entry. Columns: scan ("old snapshot", "first", "second"), tuples, lookups.
    """
    tested, rows = server(chapter), []
    with tested.connect() as connection, tested.connect(autocommit=False) as old:
        with connection.transaction():
            loading.replace(connection, "scaling_fresh", SQL.text("commit_log.fresh"))
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        SQL.run(old, "commit_log.prepare_index_scan")
        SQL.run(old, "commit_log.index_scan")
        SQL.run(connection, "commit_log.insert_fresh", tuples=tuples)
        rows.append(("old snapshot", tuples, _asked_by(old, connection)))
    for scan in ("first", "second"):
        with tested.connect() as connection:
            SQL.run(connection, "commit_log.prepare_index_scan")
            rows.append((scan, tuples, _asked_by(connection, connection)))
    return pd.DataFrame(rows, columns=["scan", "tuples", "lookups"])


def _asked_by(scanning: psycopg.Connection, watch: psycopg.Connection) -> int:
    """Questions of the commit log during a session's index scan, which hands its counts in."""
    before = _lookups(watch)
    SQL.run(scanning, "commit_log.index_scan")
    if scanning is not watch:
        scanning.rollback()
        scanning.autocommit = True
        counters.force_flush(scanning)
    return _lookups(watch) - before


PAGE, ON_A_PAGE = 8192, 32_768  # bytes of a page, and transactions that it knows of
CACHED = 16  # so many pages fill the smallest cache
SLOW, OTHER = 17, 18  # two that aren't among them
DELAY = 0.6  # seconds that the slow page takes to be read
READER, SAME_PAGE, OTHER_PAGE = "reads the slow page", "needs the same page", "needs another page"


@experiment(claims=["haas-020"])
def one_slow_page(chapter: Chapter) -> pd.DataFrame:
    """Who waits while a page of the commit log is read into a full cache by somebody else.

    The page was made slow on purpose. In PostgreSQL 9.1 its place in the cache was still the one
    to be used next, so whoever needed any other page waited there for a reading that was none of
    his. Columns: session, page, waits. CannotMeasure where the page isn't slow.
    """
    slow_page = disk.Disk(read=DELAY, only="pg_xact/0000", offset=SLOW * PAGE)
    with disk.Slowed() as slow:
        tested = second_server(chapter, slow, shared_buffers=SMALL_POOL)
        releases.require(tested.version, "xid8")  # by which pg_xact_status asks for a page
        _many_transactions(tested)
        with tested.connect() as filling:
            for page in range(CACHED):
                _ask(filling, page)
        with slow.serving(slow_page):
            seconds = _while_slow_page_is_read(tested)
    waits = {session: taken >= 0.9 * DELAY for session, taken in seconds.items()}
    if not (waits[READER] and waits[SAME_PAGE]):
        raise CannotMeasure(
            "C compiler", "the page that was to be slow wasn't, not even for those who needed it"
        )
    pages = {READER: SLOW, SAME_PAGE: SLOW, OTHER_PAGE: OTHER}
    rows = [(session, page, waits[session]) for session, page in pages.items()]
    return pd.DataFrame(rows, columns=["session", "page", "waits"])


def _while_slow_page_is_read(server: Cluster) -> dict[str, float]:
    """Seconds after the slow page was first asked for at which each session has its page."""
    with (
        ThreadPoolExecutor(2) as pool,
        server.connect() as first,
        server.connect() as same,
        server.connect() as other,
        server.connect() as watch,
    ):
        began = time.monotonic()
        reading = pool.submit(_ask, first, SLOW)
        pid = first.info.backend_pid
        sessions.await_wait(watch, pid, "IO", reading.done)
        waiting = pool.submit(_ask, same, SLOW)
        ended = {OTHER_PAGE: _ask(other, OTHER)}
        ended |= {READER: reading.result(), SAME_PAGE: waiting.result()}
    return {session: end - began for session, end in ended.items()}


def _many_transactions(server: Cluster) -> None:
    """Move the transaction counter on, so that the log has pages that nobody has read."""
    server.stop()
    server.offline("pg_resetwal", "-x", str(2 * CACHED * ON_A_PAGE))
    os.truncate(server.data_directory / "pg_xact" / "0000", 2 * CACHED * PAGE)
    server.start()


def _ask(connection: psycopg.Connection, page: int) -> float:
    """Ask for the status of a transaction on a page; when the answer came (time.monotonic)."""
    SQL.run(connection, "commit_log.status", transaction=str(page * ON_A_PAGE + 1_000))
    return time.monotonic()
