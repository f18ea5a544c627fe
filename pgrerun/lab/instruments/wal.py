"""The write-ahead log: where it ends, how much was written, and what it says.

Positions are bytes from the WAL's beginning, those of insertion, not of the flush: what a
transaction has put into the WAL buffers counts at once. They are the whole server's; other
sessions' WAL counts as well.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import psycopg
from psycopg.rows import DictRow, dict_row

from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.instruments.sessions import meanwhile
from pgrerun.lab.server import Server, releases, value


def position(connection: psycopg.Connection) -> int:
    """Up to where the server has inserted WAL."""
    version = connection.info.server_version
    function = releases.wal_position(version)
    return releases.wal_bytes(version, value(connection, str, f"SELECT {function}()::text"))


@dataclass
class Written:
    """The WAL of a block of work: from `start` to `end`, which is None until the block ends."""

    start: int
    end: int | None = None

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
                found.append((time.time(), position(connection)))

    with meanwhile(look):
        yield found


# -- what the WAL says --------------------------------------------------------------


def records(connection: psycopg.Connection, start: int, end: int) -> pd.DataFrame:
    """WAL between two positions by kind of record.

    Columns: resource_manager, record_type, records, bytes (headers included,
    padding between records not), fpi_bytes; most bytes first. Needs pg_walinspect
    (CannotMeasure).
    """
    rows = _inspect(
        connection,
        "pg_get_wal_records_info(pg_lsn,pg_lsn)",
        """
        SELECT resource_manager, record_type, count(*) AS records,
               sum(record_length)::bigint AS bytes, sum(fpi_length)::bigint AS fpi_bytes
        FROM pg_get_wal_records_info(%(start)s, %(end)s)
        GROUP BY resource_manager, record_type
        ORDER BY bytes DESC, resource_manager, record_type""",
        start,
        end,
    )
    return pd.DataFrame(
        rows, columns=["resource_manager", "record_type", "records", "bytes", "fpi_bytes"]
    )


def marks(connection: psycopg.Connection, relation: str, start: int, end: int) -> dict[str, int]:
    """Records of changes of a relation's visibility map between two positions: set, cleared.

    Set by records that change a page of the map. Cleared with an update or a deletion, whose lowest
    flag says that the page it leaves was all-visible. Needs pg_walinspect of PostgreSQL 16
    (CannotMeasure).
    """
    [counted] = _inspect(
        connection,
        "pg_get_wal_block_info(pg_lsn,pg_lsn,boolean)",
        r"""
        SELECT count(*) FILTER (WHERE relforknumber = 2) AS set,
               count(*) FILTER (
                   WHERE resource_manager = 'Heap' AND record_type ~ 'UPDATE|DELETE'
                     AND block_id = 0 AND description ~ 'flags: 0x[0-9A-Fa-f]*[13579BDFbdf]\M'
               ) AS cleared
        FROM pg_get_wal_block_info(%(start)s, %(end)s, false)
        WHERE relfilenode = pg_relation_filenode(%(relation)s::regclass)""",
        start,
        end,
        relation=relation,
    )
    return dict(counted)


def _inspect(
    connection: psycopg.Connection,
    function: str,
    query: str,
    start: int,
    end: int,
    **parameters: str,
) -> list[DictRow]:
    """The rows of a query that calls a function of pg_walinspect."""
    name = function.split("(")[0]
    releases.require(connection.info.server_version, name)
    if not value(connection, bool, "SELECT to_regprocedure(%s) IS NOT NULL", [function]):
        raise CannotMeasure(
            "contrib:pg_walinspect",
            f"The WAL can't be read by {name}: the extension pg_walinspect of "
            "PostgreSQL 16 or later isn't installed in this database (it needs a superuser).",
        )
    # only flushed WAL can be inspected: a transaction that has written something and commits
    # synchronously flushes it
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT pg_logical_emit_message(true, 'pgrerun', '')")
    ends = {"start": start, "end": end}
    places = {name: f"{at >> 32:X}/{at & 0xFFFFFFFF:X}" for name, at in ends.items()}  # pg_lsn
    try:
        cursor = connection.cursor(row_factory=dict_row)
        return cursor.execute(query, parameters | places).fetchall()
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure(
            "superuser",
            f"The WAL can't be read here: {error.diag.message_primary}. It takes a superuser.",
        ) from None
