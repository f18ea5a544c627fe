"""What the server counted around a block of work: deltas of its statistics views.

The probe must not show up in its own readings, least of all with a pool of 16
pages, where every catalog page it looks at is a read. So it is a connection of
its own, which calls the functions *behind* the views for a list of OIDs learned
beforehand, as prepared statements with a generic plan: once warm, a reading
touches no relation at all.
PostgreSQL 18 also counts I/O per backend; what the probe still caused, say after
DDL has emptied its caches, is subtracted by that account.

A view that a release doesn't have gives None in place of a frame, never zeros.
Which pages were touched is the business of `pages.py`, which processes did the
I/O that of `process_table.py`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row

from pgrerun.errors import RerunError, ServerError
from pgrerun.lab.instruments import PAGE, clock
from pgrerun.lab.server import Server, releases, row, value
from pgrerun.lab.server.private import Closing
from pgrerun.lab.server.queries import Parameters

# column: function of a relation's OID behind pg_stat_all_* and pg_statio_all_*
_OF_RELATION = {
    "fetched": "pg_stat_get_blocks_fetched",
    "hit": "pg_stat_get_blocks_hit",
    "scans": "pg_stat_get_numscans",
    "tuples_returned": "pg_stat_get_tuples_returned",
    "tuples_fetched": "pg_stat_get_tuples_fetched",
    "inserted": "pg_stat_get_tuples_inserted",
    "updated": "pg_stat_get_tuples_updated",
    "deleted": "pg_stat_get_tuples_deleted",
    "hot_updated": "pg_stat_get_tuples_hot_updated",
    "newpage_updated": "pg_stat_get_tuples_newpage_updated",
}
# column of pg_stat_database: function of the database's OID
_OF_DATABASE = {
    "commits": "pg_stat_get_db_xact_commit",
    "rollbacks": "pg_stat_get_db_xact_rollback",
    "fetched": "pg_stat_get_db_blocks_fetched",
    "hit": "pg_stat_get_db_blocks_hit",
    "inserted": "pg_stat_get_db_tuples_inserted",
    "updated": "pg_stat_get_db_tuples_updated",
    "deleted": "pg_stat_get_db_tuples_deleted",
    "temp_bytes": "pg_stat_get_db_temp_bytes",
    "deadlocks": "pg_stat_get_db_deadlocks",
    "sessions": "pg_stat_get_db_sessions",
}
# views made of functions alone; reading them touches no relation
_VIEWS = {
    "io": ("pg_stat_io", ["backend_type", "object", "context"]),
    "wal": ("pg_stat_wal", []),
    "bgwriter": ("pg_stat_bgwriter", []),
}
# the columns that identify a row of each part of a reading
_KEYS = {name: keys for name, (_, keys) in _VIEWS.items()} | {
    "own_io": _VIEWS["io"][1],
    "relations": ["oid"],
    "database": [],
}
_PG_CLASS = 1259  # its OID, the same in every cluster

_RELATIONS = """
    SELECT c.oid, n.nspname AS schema, c.relname AS relation,
           coalesce(t.relname, c.relname) AS "table",
           CASE WHEN n.nspname = 'pg_catalog' THEN 'catalog ' ELSE '' END ||
           CASE c.relkind WHEN 'i' THEN 'index' WHEN 't' THEN 'toast'
                          WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_index i ON i.indexrelid = c.oid
    LEFT JOIN pg_class t ON t.oid = i.indrelid
    WHERE c.relkind IN ('r', 'i', 't', 'S', 'm')"""


def force_flush(*connections: psycopg.Connection) -> None:
    """Make sessions hand in what they have counted; whoever looks afterwards sees it.

    From PostgreSQL 15 on this is one call. Before, a session sends its counts to the
    statistics collector at most every half second and after a statement, which is waited for. The
    collector writes them down for whoever asks, unless it did so less than half a second ago:
    nobody asks while the first wait lasts, so that the second takes no time, and before 9.5,
    where it couldn't be seen to end, there is none. Before 8.4 the collector doesn't wait to be
    asked, and is waited for.
    None may be inside a transaction (ServerError).
    """
    for connection in connections:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise ServerError(
                "A connection is inside a transaction, so its counts can't be read: commit or"
                " roll back (or connect with autocommit) before the measured block begins and"
                " ends."
            )
    old = [
        connection
        for connection in connections
        if not releases.has(connection.info.server_version, "pg_stat_force_next_flush")
    ]
    if old:
        time.sleep(_COLLECTED)
    for connection in connections:
        statement = "SELECT 1" if connection in old else "SELECT pg_stat_force_next_flush()"
        connection.execute(statement)
        _end(connection)
    version = old[-1].info.server_version if old else 0
    at_will = not releases.has(version, "counts that are written when asked for")
    if old and (at_will or releases.has(version, "pg_stat_get_snapshot_timestamp")):
        _await_collector(old[-1])


_COLLECTED = 0.6  # seconds; sessions and collector of old releases act every half second


def _end(connection: psycopg.Connection) -> None:
    """Counts are handed in when a transaction ends."""
    if not connection.autocommit:
        connection.rollback()


def _await_collector(connection: psycopg.Connection) -> None:
    """Wait until the collector has written down all that was sent to it before this call."""
    if not releases.has(connection.info.server_version, "pg_stat_get_snapshot_timestamp"):
        time.sleep(_COLLECTED)
        return
    sent = row(connection, "SELECT clock_timestamp()")

    def written() -> bool:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        last = row(connection, "SELECT pg_stat_get_snapshot_timestamp()")
        _end(connection)
        return last > sent

    if not clock.until(written, 10, 0.05):
        raise ServerError(
            "The server's statistics collector has written nothing for 10 s, so counts can't be"
            " read. Its log may say why."
        )


def _offered(connection: psycopg.Connection, functions: Mapping[str, str]) -> dict[str, str]:
    """Those of the functions or views, by column, that a server has."""
    return {column: name for column, name in functions.items() if releases.offers(connection, name)}


def counts(connection: psycopg.Connection, *relations: str) -> dict[str, int | None]:
    """What was counted of tables or indexes since they were made, the session's own work included.

    Of several the sum. Keys: fetched and hit (pages), scans, tuples_returned, tuples_fetched,
    inserted, updated, deleted, hot_updated, which is 0 before HOT, and newpage_updated, which is
    None before PostgreSQL 16. A relation is a name as SQL writes it; psycopg's UndefinedTable if it
    isn't there.
    """
    each = counts_each(connection, *relations).values()
    unknown = {name for one in each for name, count in one.items() if count is None}
    return {
        name: None if name in unknown else sum(one[name] or 0 for one in each)
        for name in _OF_RELATION
    }


def counts_each(
    connection: psycopg.Connection, *relations: str
) -> dict[str, dict[str, int | None]]:
    """The same of each relation: asked for at once, they cost an old release one wait.

    See `force_flush`.
    """
    force_flush(connection)
    known = _offered(connection, _OF_RELATION)
    calls = ", ".join(f"{function}(name::regclass)" for function in known.values())
    query = f"SELECT name, {calls} FROM unnest(%s::text[]) AS name"
    found: dict[str, int | None] = dict.fromkeys(_OF_RELATION) | {"hot_updated": 0}
    return {
        name: found | dict(zip(known, counted, strict=True))
        for name, *counted in connection.execute(query, [list(relations)])
    }


def checkpoints(connection: psycopg.Connection) -> int:
    """Checkpoints since the statistics were reset; before 18 those due or asked for.

    CannotMeasure before 8.3.
    Before 15 the collector has to be waited for, for about half a second.
    """
    query = releases.checkpoints_done(connection.info.server_version)
    _await_checkpointer(connection)
    if not releases.has(connection.info.server_version, "pg_stat_force_next_flush"):
        _await_collector(connection)
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return value(connection, int, query)


def _await_checkpointer(connection: psycopg.Connection) -> None:
    """Wait until the checkpointer has nothing to do.

    It hands in its counts after it has told whoever asked for the checkpoint that this is done.
    """
    if not releases.has(connection.info.server_version, "backend_type"):
        time.sleep(0.05)
        return
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        " AND wait_event IS DISTINCT FROM 'CheckpointerMain'"
    )
    clock.until(lambda: not value(connection, int, busy), 2, 0.002)


@dataclass
class Delta:
    """What was counted between the start and the end of a measured block.

    Filled in when the block ends. Frames of one row per counted thing, rows in
    which nothing changed left out:

    io          backend_type, object, context and the counts of pg_stat_io
                (pages; the *_bytes columns bytes); PostgreSQL 16 on
    relations   schema, relation, table, kind ("table", "index", "toast",
                "sequence", the same after "catalog "), read and hit (pages),
                and the tuple counters of pg_stat_all_tables

    wal, bgwriter, database: mappings of column to change. The database's commits may
    contain a handful of the probe's own; count transactions where they are made.
    What the release doesn't offer is None; `version` is the release's.
    """

    io: pd.DataFrame | None = None
    relations: pd.DataFrame | None = None
    wal: dict[str, float] | None = None
    bgwriter: dict[str, float] | None = None
    database: dict[str, float] | None = None
    wal_bytes: int | None = None
    version: int = 0

    @property
    def wal_flushes(self) -> tuple[int, float]:
        """Flushes of the WAL by whomever, and their seconds (0 without track_wal_io_timing).

        CannotMeasure before PostgreSQL 14, which doesn't count them.
        """
        releases.require(self.version, _VIEWS["wal"][0])
        counts = _there(self.wal)
        if "wal_sync" in counts:
            return int(counts["wal_sync"]), counts["wal_sync_time"] / 1000
        assert self.io is not None  # which counts them from PostgreSQL 18 on
        flushed = self.io[self.io["object"] == "wal"]
        return int(flushed["fsyncs"].sum()), float(flushed["fsync_time"].sum()) / 1000

    @property
    def reads(self) -> pd.Series:
        """Pages of 8 kB read into the pool, by who (a backend type; "all" before 16)."""
        if self.io is None:
            database = _there(self.database)
            return pd.Series({"all": database["fetched"] - database["hit"]}, name="reads")
        return _pages(self.io, "read")

    @property
    def writes(self) -> pd.Series:
        """Existing pages of 8 kB written out of the pool, by who; extension is apart.

        CannotMeasure before 8.3, which counts none.
        """
        if self.io is not None:
            return _pages(self.io, "write")
        view = _VIEWS["bgwriter"][0]
        releases.require(self.version, view)
        counts = _there(self.bgwriter)
        if "buffers_backend" not in counts:  # commit 6f5c38dcd0, five days after HOT
            columns = f"all columns of {view}"
            raise releases.too_old(self.version, releases.SINCE[view], columns, development=True)
        return pd.Series(
            {
                "checkpointer": counts["buffers_checkpoint"],
                "background writer": counts["buffers_clean"],
                # older releases count pages a backend appended here as well
                "client backend": counts["buffers_backend"],
            },
            name="writes",
        )


def _there(counts: dict[str, float] | None) -> dict[str, float]:
    """Counts that every release has, once the block has ended."""
    if counts is None:
        raise RerunError("A block is counted when it has ended, not before.")
    return counts


def _pages(io: pd.DataFrame, verb: str) -> pd.Series:
    io = io[io["object"] != "wal"]
    if f"{verb}_bytes" in io:
        pages = io[f"{verb}_bytes"] / PAGE
    else:  # 16 and 17 count operations and give their size
        pages = io[f"{verb}s"] * io["op_bytes"] / PAGE
    totals = pages.groupby(io["backend_type"]).sum()
    return totals[totals > 0].rename(f"{verb}s")


@dataclass
class _Reading:
    """All counters at one moment: the time and WAL position as text, a frame per part."""

    now: str
    lsn: str
    frames: dict[str, pd.DataFrame]


class Counters(Closing):
    """Reads the statistics of one server through a connection of its own.

    `settle` (seconds) is how long background writer and WAL writer get to report
    what they have done before a reading; they do so once per round of 200 ms.
    Close it, or use it as a context manager.
    """

    def __init__(self, server: Server, settle: float = 0.25):
        self._settle = settle
        self._conn = server.connect()
        self._version = self._conn.info.server_version
        self._pid = self._conn.info.backend_pid
        self._conn.prepare_threshold = 0
        if releases.knows(self._version, "plan_cache_mode"):
            self._run("SET plan_cache_mode = force_generic_plan")
        if releases.knows(self._version, "stats_fetch_consistency"):
            self._run("SET stats_fetch_consistency = snapshot")
        self._statements = self._prepare()
        self.learn()

    def close(self) -> None:
        self._conn.close()

    def learn(self) -> None:
        """Learn which relations there are, and plan, so that no later reading looks into catalogs.

        What is measured does so by itself where relations have come or gone since; to have it done
        before is for whoever has filled a small pool.
        """
        self._flush([])
        self._learn_relations()
        for _ in range(2):  # planning reads catalogs, too
            self._wait_for_leavers("infinity", [])
            self._read()

    @contextmanager
    def measured(
        self,
        *connections: psycopg.Connection,
        idle: Sequence[psycopg.Connection] = (),
    ) -> Iterator[Delta]:
        """Count around a block of work; the Delta is filled when the block ends.

        `connections` are those that do work in the block and stay open: each is
        made to hand in its counts, so none may be inside a transaction at either
        end (ServerError). Backends that end with the block, as pgbench's do,
        hand in theirs as they leave and are waited for; `idle` are others' that stay
        and do nothing, so nobody waits for them.
        """
        delta = Delta(version=self._version)
        self._flush(connections)
        time.sleep(self._settle)
        before = self._read()
        if self._stale(before):
            self._learn_relations()
            self._flush([])
            before = self._read()
        yield delta
        self._wait_for_leavers(before.now, [*connections, *idle])
        time.sleep(self._settle)
        self._flush(connections)
        after = self._read()
        if self._stale(after):  # relations born in the block: learning their names must not count
            self._learn_relations()
            known = after.frames["relations"]
            born = self._read().frames["relations"].drop(known.index, errors="ignore")
            after.frames["relations"] = pd.concat([known, born])
        self._fill(delta, before, after)

    # -- statements ------------------------------------------------------------

    def _run(self, sql: str, parameters: Parameters = None) -> list[DictRow]:
        try:
            cursor = self._conn.cursor(row_factory=dict_row).execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError as error:
            raise ServerError(
                f"The server stopped answering while its counters were read ({error}). "
                "Its log says why; run again afterwards: finished observations are kept."
            ) from error

    def _prepare(self) -> dict[str, str]:
        """The reading's statements for this release: name to SQL."""
        [found] = self._run("SELECT oid FROM pg_database WHERE datname = current_database()")
        self._database = found["oid"]
        views = _offered(self._conn, {name: view for name, (view, _) in _VIEWS.items()})

        def columns(wanted: Mapping[str, str], argument: str) -> str:
            calls = _offered(self._conn, wanted)
            return ", ".join(f"{name}({argument}) AS {column}" for column, name in calls.items())

        lsn = releases.wal_position(self._version)
        statements = {name: f"SELECT * FROM {view}" for name, view in views.items()}
        if releases.has(self._version, "pg_stat_get_backend_io"):
            statements["own_io"] = "SELECT * FROM pg_stat_get_backend_io(pg_backend_pid())"
        return statements | {
            "moment": f"SELECT clock_timestamp()::text AS now, {lsn}()::text AS lsn",
            "relations": (
                f"SELECT oid, {columns(_OF_RELATION, 'oid')} FROM unnest(%(relations)s::oid[])"
                " AS oid"
            ),
            "database": (
                f"SELECT {columns(_OF_DATABASE, 'oid')} FROM (SELECT %(database)s::oid AS oid) AS d"
            ),
        }

    def _learn_relations(self) -> None:
        """Names for the OIDs. This does scan catalogs, so only DDL makes it happen again."""
        self._names = pd.DataFrame(self._run(_RELATIONS)).set_index("oid")
        self._oids = [int(oid) for oid in self._names.index]
        self._learned_at: list[float] | None = None

    def _stale(self, reading: _Reading) -> bool:
        """Whether pg_class was changed since its names were learned."""
        changes = (
            reading.frames["relations"].loc[_PG_CLASS, ["inserted", "updated", "deleted"]].tolist()
        )
        if self._learned_at is None:
            self._learned_at = changes
        return bool(changes != self._learned_at)

    def _read(self) -> _Reading:
        arguments = {"relations": self._oids, "database": self._database}
        with self._conn.transaction():
            rows = {
                name: self._run(sql, arguments if "%(" in sql else None)
                for name, sql in self._statements.items()
            }
        [moment] = rows.pop("moment")
        frames = {name: _numbers(found, _KEYS[name]) for name, found in rows.items()}
        reading = _Reading(moment["now"], moment["lsn"], frames)
        if self._learned_at is None:
            self._stale(reading)
        return reading

    def _flush(self, connections: Sequence[psycopg.Connection]) -> None:
        """Make the given connections, and the probe, hand in what they have counted."""
        try:
            force_flush(*connections, self._conn)
        except psycopg.OperationalError as error:
            raise ServerError(
                f"The server stopped answering while its counters were read ({error}), or a"
                " connection broke. Its log says why; run again afterwards: finished observations"
                " are kept."
            ) from error

    def _wait_for_leavers(self, since: str, connections: Sequence[psycopg.Connection]) -> None:
        """Wait until other backends that worked since then have left, but not for ever.

        A backend leaves this list after it has handed in its counts.
        """
        ours = [self._pid, *(conn.info.backend_pid for conn in connections)]
        working = releases.working_backends(self._conn)
        clock.until(lambda: not self._run(working, [self._database, ours, since]), 2, 0.02)

    # -- subtraction -----------------------------------------------------------

    def _fill(self, delta: Delta, before: _Reading, after: _Reading) -> None:
        start, end = (releases.wal_bytes(self._version, one.lsn) for one in (before, after))
        delta.wal_bytes = end - start
        changes = {
            name: _subtract(frame, before.frames[name]) for name, frame in after.frames.items()
        }
        for name in ("wal", "bgwriter", "database"):
            if name in changes:
                setattr(delta, name, changes[name].iloc[0].to_dict())
        for counts in (delta.wal, delta.bgwriter, delta.database):
            if counts and min(counts.values()) < 0:
                raise ServerError(
                    "The server's statistics went backwards inside a measured block: it crashed, or"
                    " somebody called pg_stat_reset. The block can't be counted; run it again."
                )
        if "io" in changes:
            io = changes["io"]
            if "own_io" in changes:  # what the probe itself has caused
                io = io.sub(changes["own_io"].reindex(io.index, fill_value=0))
            delta.io = _changed(io).reset_index()
        delta.relations = self._relations(changes["relations"])

    def _relations(self, changes: pd.DataFrame) -> pd.DataFrame:
        changes = changes[(changes >= 0).all(axis=1)]  # a dropped relation takes its counts along
        counts = _changed(changes)
        counts.insert(0, "read", counts.pop("fetched") - counts["hit"])
        if "hot_updated" not in counts:  # before HOT no update is heap-only
            counts["hot_updated"] = 0
        frame = self._names.join(counts, how="inner")
        return frame.sort_values(["read", "hit"], ascending=False, ignore_index=True)


def _numbers(rows: list[DictRow], keys: list[str]) -> pd.DataFrame:
    """Rows as a frame of numbers indexed by the key columns; times of reset left out."""
    # column by column: to let pandas find out the types would take longer than many a measured
    # block
    counted = [name for name in rows[0] if name not in (*keys, "stats_reset")]
    labels = [[row[key] for row in rows] for key in keys]
    index = (
        pd.MultiIndex.from_arrays(labels, names=keys)
        if len(keys) > 1
        else pd.Index(*labels, name=keys[0])
        if keys
        else None
    )
    return pd.DataFrame(
        {name: _column([row[name] for row in rows]) for name in counted}, index=index
    )


def _column(values: list[int | float | None]) -> np.ndarray:
    """Whole numbers if all are, else floats; nothing counts as 0."""
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([0 if value is None else value for value in values], dtype=float)


def _subtract(after: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    change = after - before.reindex(after.index, fill_value=0)
    if "op_bytes" in after:  # a size, not a count
        change["op_bytes"] = after["op_bytes"]
    return change


def _changed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows in which anything was counted; op_bytes is a size."""
    counts = frame.drop(columns="op_bytes", errors="ignore")
    return frame[(counts != 0).any(axis=1)].copy()
