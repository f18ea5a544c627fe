"""The WAL and the commit log (CLOG): what is written, asked for and inserted."""

from collections.abc import Iterator

import psycopg

from pgrerun.chapters.scalability.load import (
    SMALL_POOL,
    SQL,
    ours,
    processors,
    server,
)
from pgrerun.lab.instruments import counters, sessions, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.server import releases
from pgrerun.lab.testbed import Row, Testbed, experiment, shortened

# ---- the WAL

ROWS, RECORDS = 5_000, 20_000
COPY = "COPY"


@experiment(units={"bytes": "bytes", "bytes_per_row": "bytes/row"})
def copied(bed: Testbed, tuples: int = ROWS) -> Iterator[Row]:
    """Bytes of WAL for the same rows, by COPY and by single INSERTs in one transaction."""
    with server(bed).connect() as connection:
        for way in (COPY, "one INSERT for each row"):
            written = bytes_of_rows(connection, way, tuples)
            yield {"way": way, "bytes": written, "bytes_per_row": written / tuples}


def bytes_of_rows(connection: psycopg.Connection, way: str, tuples: int) -> int:
    """Bytes of WAL for so many rows of a new table, by COPY or by single INSERTs."""
    loading.make(connection, "scaling_copied", SQL.text("wal.copied"))
    with wal.written(connection) as log:
        if way == COPY:
            with connection.cursor().copy(SQL.text("wal.copy").rstrip(";")) as copying:
                for number in range(1, tuples + 1):
                    copying.write_row((number, "some words"))
        else:
            SQL.run(connection, "wal.single_inserts", rows=tuples)
    return log.bytes


@experiment(units={"records": "records/s"})
def insertion(bed: Testbed, records: int = RECORDS) -> Iterator[Row]:
    """Records inserted into the WAL per second, by one session and by one per processor."""
    tested, several = server(bed), max(2, processors())

    def inserted(number: int, each: int) -> float:
        sent = [SQL.text("wal.insert_records", records=each)] * number
        return number * each / max(sessions.at_once(tested, sent))

    lasting = max(records, round(shortened(bed.parameters.seconds) * inserted(1, records)))

    yield from bed.compare(
        lambda block, sessions: {"records": inserted(sessions, lasting)},
        {"sessions": [1, several]},
        pairs=bed.timed_pairs(),
        warmup=0,
    )


# ---- the commit log


def _questions(connection: psycopg.Connection) -> int:
    """Pages of the commit log that were asked for so far."""
    counters.force_flush(connection)
    [[asked]] = SQL.run(connection, "commit_log.lookups").fetchall()
    return int(asked)


@experiment(units={"kilobytes": "kB"}, needs=["restart"])
def clog_buffers(bed: Testbed) -> Iterator[Row]:
    """Memory for the commit log by the size of the buffer pool."""
    releases.require_settings(server(bed).version, ["transaction_buffers"])
    for pool in ({"shared_buffers": SMALL_POOL}, {}, {"shared_buffers": "1GB"}):
        with bed.cluster(**ours(bed) | pool).connect() as connection:
            [[size, kilobytes]] = SQL.run(connection, "commit_log.buffers").fetchall()
        yield {"shared_buffers": size, "kilobytes": kilobytes}


@experiment(units={"questions": "questions"})
def index_scans(bed: Testbed, tuples: int = 2_000) -> Iterator[Row]:
    """How often three index scans ask the commit log for tuples of as many transactions.

    The first has a snapshot from before them.
    """
    tested = server(bed)
    with tested.connect() as connection, tested.connect(autocommit=False) as old:
        loading.make(connection, "scaling_fresh", SQL.text("commit_log.fresh"))
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        SQL.run(old, "commit_log.prepare_index_scan")
        SQL.run(old, "commit_log.index_scan")
        SQL.run(connection, "commit_log.insert_fresh", tuples=tuples)
        asked = _asked_by(old, connection)
    yield {"scan": "old snapshot", "tuples": tuples, "questions": asked}
    for scan in ("first", "second"):
        with tested.connect() as connection:
            SQL.run(connection, "commit_log.prepare_index_scan")
            asked = _asked_by(connection, connection)
        yield {"scan": scan, "tuples": tuples, "questions": asked}


def _asked_by(scanning: psycopg.Connection, watch: psycopg.Connection) -> int:
    """Questions of the commit log during a session's index scan, which hands its counts in."""
    before = _questions(watch)
    SQL.run(scanning, "commit_log.index_scan")
    if scanning is not watch:
        scanning.rollback()
        scanning.autocommit = True
        counters.force_flush(scanning)
    return _questions(watch) - before
