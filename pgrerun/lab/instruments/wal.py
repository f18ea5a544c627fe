"""The write-ahead log: where it ends, how much was written, and what it says.

Positions are those of insertion, not of the flush: what a transaction has put into the
WAL buffers counts at once. They are the whole server's; other sessions' WAL counts as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import psycopg
from psycopg.rows import DictRow, dict_row

from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.instruments.sessions import meanwhile
from pgrerun.lab.server import Server, releases, value


@dataclass(frozen=True, order=True)
class Position:
    """A place in the WAL: so many `bytes` from its beginning.

    `str` gives PostgreSQL's own form ("0/1A2B3C4"), which statements take as pg_lsn;
    the difference of two positions is a number of bytes.
    """

    bytes: int

    @classmethod
    def parse(cls, lsn: str, version: int = 180000) -> Position:
        """The position that a PostgreSQL of this version prints as `lsn`."""
        return cls(releases.wal_bytes(version, lsn))

    def __str__(self) -> str:
        return f"{self.bytes >> 32:X}/{self.bytes & 0xFFFFFFFF:X}"

    def __sub__(self, earlier: Position) -> int:
        return self.bytes - earlier.bytes


def position(connection: psycopg.Connection) -> Position:
    """Up to where the server has inserted WAL."""
    version = connection.info.server_version
    function = releases.wal_position(version)
    return Position.parse(value(connection, str, f"SELECT {function}()::text"), version)


@dataclass
class Written:
    """The WAL of a block of work: from `start` to `end`, which is None until the block ends."""

    start: Position
    end: Position | None = None

    @property
    def bytes(self) -> int:
        """Bytes of WAL, padding and page headers included. RerunError inside the block."""
        if self.end is None:
            raise RerunError("How much WAL a block has written is known when the block has ended.")
        return self.end - self.start


@contextmanager
def written(connection: psycopg.Connection) -> Iterator[Written]:
    """Count the WAL that the server writes while the block runs.

    `connection` only asks for positions, which writes nothing; it may do the block's work
    as well. Nothing is waited for: a commit with synchronous_commit off counts too.
    """
    found = Written(position(connection))
    yield found
    found.end = position(connection)


@contextmanager
def positions(server: Server, every: float = 0.03) -> Iterator[list[tuple[float, int]]]:
    """Where the WAL ended at which time, looked up every so many seconds while the block runs.

    Pairs of seconds since the epoch and bytes, complete and not empty when the block has ended.
    """
    found: list[tuple[float, int]] = []

    def look(over: threading.Event) -> None:
        with server.connect() as connection:
            ended = False
            while not ended:
                ended = over.wait(every)
                found.append((time.time(), position(connection).bytes))

    with meanwhile(look):
        yield found


# -- what the WAL says --------------------------------------------------------------


def blocks(
    connection: psycopg.Connection, start: Position | str, end: Position | str
) -> pd.DataFrame:
    """Pages of relations that the WAL between two positions changes.

    Columns: relation (None if it is gone, or in another database), fork ("main",
    "fsm", "vm", "init"), blocks_distinct (pages), records, fpi_bytes; one row per
    relation and fork. Needs pg_walinspect of PostgreSQL 16 (CannotMeasure).
    """
    _require(connection, "pg_get_wal_block_info(pg_lsn,pg_lsn,boolean)")
    rows = _inspect(
        connection,
        """
        SELECT pg_filenode_relation(reltablespace, relfilenode)::regclass::text AS relation,
               (ARRAY['main', 'fsm', 'vm', 'init'])[relforknumber + 1] AS fork,
               count(DISTINCT relblocknumber) AS blocks_distinct,
               count(*) AS records, coalesce(sum(block_fpi_length), 0)::bigint AS fpi_bytes
        FROM pg_get_wal_block_info(%s, %s, false)
        GROUP BY reltablespace, reldatabase, relfilenode, relforknumber
        ORDER BY records DESC, relation, fork""",
        [str(start), str(end)],
    )
    return pd.DataFrame(
        rows, columns=["relation", "fork", "blocks_distinct", "records", "fpi_bytes"]
    )


def records(
    connection: psycopg.Connection, start: Position | str, end: Position | str
) -> pd.DataFrame:
    """WAL between two positions by kind of record.

    Columns: resource_manager, record_type, records, bytes (headers included,
    padding between records not), fpi_bytes; most bytes first. Needs pg_walinspect
    (CannotMeasure).
    """
    _require(connection, "pg_get_wal_records_info(pg_lsn,pg_lsn)")
    rows = _inspect(
        connection,
        """
        SELECT resource_manager, record_type, count(*) AS records,
               sum(record_length)::bigint AS bytes, sum(fpi_length)::bigint AS fpi_bytes
        FROM pg_get_wal_records_info(%s, %s)
        GROUP BY resource_manager, record_type
        ORDER BY bytes DESC, resource_manager, record_type""",
        [str(start), str(end)],
    )
    return pd.DataFrame(
        rows, columns=["resource_manager", "record_type", "records", "bytes", "fpi_bytes"]
    )


def marks(
    connection: psycopg.Connection, relation: str, start: Position | str, end: Position | str
) -> dict[str, int]:
    """Records of changes of a relation's visibility map between two positions: set, cleared.

    Set by records that change a page of the map. Cleared with an update or a deletion, whose lowest
    flag says that the page it leaves was all-visible. Needs pg_walinspect of PostgreSQL 16
    (CannotMeasure).
    """
    changed = blocks(connection, start, end)
    of_map = changed[(changed["relation"] == relation) & (changed["fork"] == "vm")]
    [row] = _inspect(
        connection,
        r"""
        SELECT count(*) AS records
        FROM pg_get_wal_block_info(%s, %s, false)
        WHERE resource_manager = 'Heap' AND record_type ~ 'UPDATE|DELETE' AND block_id = 0
          AND relfilenode = pg_relation_filenode(%s::regclass)
          AND description ~ 'flags: 0x[0-9A-Fa-f]*[13579BDFbdf]\M'""",
        [str(start), str(end), relation],
    )
    return {"set": int(of_map["records"].sum()), "cleared": row["records"]}


def _require(connection: psycopg.Connection, function: str) -> None:
    name = function.split("(")[0]
    releases.require(connection.info.server_version, name)
    if value(connection, bool, "SELECT to_regprocedure(%s) IS NOT NULL", [function]):
        return
    raise CannotMeasure(
        "contrib:pg_walinspect",
        f"The WAL can't be read by {name}: the extension pg_walinspect of "
        "PostgreSQL 16 or later isn't installed in this database (it needs a superuser).",
    )


def _flush(connection: psycopg.Connection) -> None:
    """Make the WAL readable up to now: only flushed WAL can be inspected.

    A transaction that has written something and commits synchronously does it.
    """
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT pg_logical_emit_message(true, 'pgrerun', '')")


def _inspect(
    connection: psycopg.Connection, query: str, parameters: Sequence[str]
) -> list[DictRow]:
    _flush(connection)
    try:
        return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure(
            "superuser",
            f"The WAL can't be read here: {error.diag.message_primary}. It takes a superuser.",
        ) from None
