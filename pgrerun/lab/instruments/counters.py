"""What the server counted around a block of work: deltas of its statistics views.

The probe must not show up in its own readings, least of all with a pool of 16
pages, where every catalog page it looks at is a read. So it is a connection of
its own, which calls the functions *behind* the views for a list of OIDs learned
beforehand, as prepared statements with a generic plan: once warm, a reading
touches no relation at all (`idle_noise()` measures that on the server at hand).
PostgreSQL 18 also counts I/O per backend; what the probe still caused, say after
DDL has emptied its caches, is subtracted by that account.

A view that a release doesn't have gives None in place of a frame, never zeros.
Which pages were touched is the business of `pages.py`, which processes did the
I/O that of `processes.py`; `processes.reconcile` compares both accounts.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.instruments import PAGE, processes

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
    "checkpointer": ("pg_stat_checkpointer", []),
    "bgwriter": ("pg_stat_bgwriter", []),
    "slru": ("pg_stat_slru", ["name"]),
}
# the columns that identify a row of each part of a reading
_KEYS = {name: keys for name, (_, keys) in _VIEWS.items()} | {
    "own_io": _VIEWS["io"][1],
    "relations": ["oid"],
    "database": [],
}
_LSN, _OLD_LSN = "pg_current_wal_insert_lsn", "pg_current_xlog_insert_location"
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
    slru        name and the counts of pg_stat_slru (pages); 13 on

    wal, checkpointer, bgwriter, database: mappings of column to change. The
    database's commits may contain a handful of the probe's own; count transactions
    where they are made.
    What the release doesn't offer is None, and named in `missing`.
    `usage` is the process table's account of the same window (`processes.Usage`),
    None if the server's processes can't be seen. `seconds` is the block's own length;
    the window is longer by the time that background processes get to report.
    `unsettled` lists backends that worked in the block and may have kept
    counts to themselves.
    """

    seconds: float | None = None
    io: pd.DataFrame | None = None
    relations: pd.DataFrame | None = None
    slru: pd.DataFrame | None = None
    wal: dict[str, float] | None = None
    checkpointer: dict[str, float] | None = None
    bgwriter: dict[str, float] | None = None
    database: dict[str, float] | None = None
    start_lsn: str | None = None
    end_lsn: str | None = None
    wal_bytes: int | None = None
    usage: processes.Usage | None = None
    missing: list[str] = field(default_factory=list)
    unsettled: list[int] = field(default_factory=list)

    @property
    def wal_records(self) -> float | None:
        return self.wal and self.wal["wal_records"]

    @property
    def wal_fpi(self) -> float | None:
        """Full page images written to the WAL."""
        return self.wal and self.wal["wal_fpi"]

    @property
    def checkpoints(self) -> int:
        """Checkpoints that ended (before PostgreSQL 18: began) inside the block."""
        if self.checkpointer is not None:
            counts = self.checkpointer
            done = counts.get("num_done", counts["num_timed"] + counts["num_requested"])
        else:
            done = self.bgwriter["checkpoints_timed"] + self.bgwriter["checkpoints_req"]
        return int(done)

    @property
    def reads(self) -> pd.Series:
        """Pages of 8 kB read into the pool, by who (a backend type; "all" before 16)."""
        if self.io is None:
            database = self.database
            return pd.Series({"all": database["fetched"] - database["hit"]}, name="reads")
        return self._pages("read")

    @property
    def writes(self) -> pd.Series:
        """Existing pages of 8 kB written out of the pool, by who; extension is apart."""
        if self.io is not None:
            return self._pages("write")
        counts = self.bgwriter
        return pd.Series(
            {
                "checkpointer": counts["buffers_checkpoint"],
                "background writer": counts["buffers_clean"],
                # older releases count pages a backend appended here as well
                "client backend": counts["buffers_backend"],
            },
            name="writes",
        )

    @property
    def extends(self) -> pd.Series | None:
        """Pages by which relations grew, by who; None before PostgreSQL 16."""
        return None if self.io is None else self._pages("extend")

    def _pages(self, verb: str) -> pd.Series:
        io = self.io[self.io["object"] != "wal"]
        if f"{verb}_bytes" in io:
            pages = io[f"{verb}_bytes"] / PAGE
        else:  # 16 and 17 count operations and give their size
            pages = io[f"{verb}s"] * io["op_bytes"] / PAGE
        totals = pages.groupby(io["backend_type"]).sum()
        return totals[totals > 0].rename(f"{verb}s")

    def per(self, transactions: float) -> dict[str, float]:
        """Pages read, written and added, and WAL bytes and records, per transaction."""
        if not transactions > 0:
            raise RerunError(
                f"I/O per transaction needs a positive number of transactions, not {transactions}."
            )
        totals = {
            "reads": self.reads.sum(),
            "writes": self.writes.sum(),
            "extends": None if self.extends is None else self.extends.sum(),
            "wal_bytes": self.wal_bytes,
            "wal_records": self.wal_records,
            "wal_fpi": self.wal_fpi,
        }
        return {
            name: float(value) / transactions for name, value in totals.items() if value is not None
        }


class Counters:
    """Reads the statistics of one server through a connection of its own.

    `settle` (seconds) is how long background writer and WAL writer get to report
    what they have done before a reading; they do so once per round of 200 ms.
    Close it, or use it as a context manager.
    """

    def __init__(self, server, settle: float = 0.25):
        self._settle = settle
        self._server = server
        self._conn = server.connect()
        self._version = self._conn.info.server_version
        self._pid = self._conn.info.backend_pid
        self._conn.prepare_threshold = 0
        if self._version >= 120000:
            self._run("SET plan_cache_mode = force_generic_plan")
        if self._version >= 150000:
            self._run("SET stats_fetch_consistency = snapshot")
        self._statements = self._prepare()
        self._learn_relations()
        for _ in range(2):  # planning reads catalogs: let that be over before anything is measured
            self._flush([])
            self._wait_for_leavers("infinity", [])
            self._read()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self) -> None:
        self._conn.close()

    @contextmanager
    def measured(self, *connections: psycopg.Connection, settle: float | None = None) -> Iterator[Delta]:
        """Count around a block of work; the Delta is filled when the block ends.

        `connections` are those that do work in the block and stay open: each is
        made to hand in its counts, so none may be inside a transaction at either
        end (ServerError). Backends that end with the block, as pgbench's do,
        hand in theirs as they leave and are waited for.
        """
        settle = self._settle if settle is None else settle
        delta = Delta(missing=list(self.missing))
        self._flush(connections)
        time.sleep(settle)
        before = self._read()
        if self._stale(before):
            self._learn_relations()
            self._flush([])
            before = self._read()
        usage = self._usage()
        clock = time.perf_counter()
        yield delta
        delta.seconds = time.perf_counter() - clock
        self._flush(connections)
        delta.unsettled = self._wait_for_leavers(before["now"], connections)
        time.sleep(settle)
        self._flush([])
        if usage is not None:
            delta.usage = self._usage() - usage
        after = self._read()
        if self._stale(after):  # relations born in the block: learning their names must not count
            self._learn_relations()
            known = after["relations"]
            born = self._read()["relations"].drop(known.index, errors="ignore")
            after["relations"] = pd.concat([known, born])
        self._fill(delta, before, after)

    def idle_noise(self) -> Delta:
        """The reading of an empty block: what this instrument adds by itself."""
        with self.measured() as delta:
            pass
        return delta

    # -- statements ------------------------------------------------------------

    def _run(self, sql: str, parameters=None) -> list[dict]:
        try:
            cursor = self._conn.cursor(row_factory=dict_row).execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError as error:
            raise ServerError(
                f"The server stopped answering while its counters were read ({error}). "
                "Its log says why; run again afterwards: finished observations are kept."
            ) from error

    def _prepare(self) -> dict[str, str]:
        """The reading's statements for this release: name to SQL; sets `missing` too."""
        names = [*_OF_RELATION.values(), *_OF_DATABASE.values(), "pg_stat_get_backend_io", _LSN, _OLD_LSN]
        rows = self._run("SELECT proname FROM pg_proc WHERE proname = ANY(%s)", [names])
        functions = {row["proname"] for row in rows}
        rows = self._run(
            "SELECT relname FROM pg_class WHERE relname = ANY(%s)", [[view for view, _ in _VIEWS.values()]]
        )
        views = {row["relname"] for row in rows}
        [row] = self._run("SELECT oid FROM pg_database WHERE datname = current_database()")
        self._database = row["oid"]

        def columns(wanted, argument):
            calls = {column: name for column, name in wanted.items() if name in functions}
            return ", ".join(f"{name}({argument}) AS {column}" for column, name in calls.items())

        self.missing = [view for view, _ in _VIEWS.values() if view not in views]
        lsn = _LSN if _LSN in functions else _OLD_LSN
        statements = {name: f"SELECT * FROM {view}" for name, (view, _) in _VIEWS.items() if view in views}
        if "pg_stat_get_backend_io" in functions:
            statements["own_io"] = "SELECT * FROM pg_stat_get_backend_io(pg_backend_pid())"
        return statements | {
            "moment": f"SELECT clock_timestamp()::text AS now, {lsn}()::text AS lsn",
            "relations": f"SELECT oid, {columns(_OF_RELATION, 'oid')} FROM unnest(%(relations)s::oid[]) AS oid",
            "database": f"SELECT {columns(_OF_DATABASE, 'oid')} FROM (SELECT %(database)s::oid AS oid) AS d",
        }

    def _learn_relations(self) -> None:
        """Names for the OIDs. This does scan catalogs, so only DDL makes it happen again."""
        self._names = pd.DataFrame(self._run(_RELATIONS)).set_index("oid")
        self._oids = [int(oid) for oid in self._names.index]
        self._learned_at = None

    def _stale(self, reading: dict) -> bool:
        """Whether pg_class was changed since its names were learned."""
        changes = reading["relations"].loc[_PG_CLASS, ["inserted", "updated", "deleted"]].tolist()
        if self._learned_at is None:
            self._learned_at = changes
        return changes != self._learned_at

    def _read(self) -> dict:
        """All counters at one moment: frames and mappings, ready for subtraction."""
        arguments = {"relations": self._oids, "database": self._database}
        with self._conn.transaction():
            rows = {
                name: self._run(sql, arguments if "%(" in sql else None)
                for name, sql in self._statements.items()
            }
        reading = {name: _numbers(found, _KEYS[name]) for name, found in rows.items() if name in _KEYS}
        if self._learned_at is None:
            self._stale(reading)
        return reading | rows["moment"][0]

    def _flush(self, connections) -> None:
        """Make the given connections, and the probe, hand in what they have counted."""
        for conn in connections:
            if conn.info.transaction_status != TransactionStatus.IDLE:
                raise ServerError(
                    "A connection is inside a transaction, so its counts can't be read: commit or "
                    "roll back (or connect with autocommit) before the measured block begins and ends."
                )
        if self._version >= 150000:
            statement = "SELECT pg_stat_force_next_flush()"
        else:  # a backend hands in at most every half second, and only after a statement
            statement = "SELECT 1"
            time.sleep(0.6)
        for conn in connections:
            try:
                conn.execute(statement)
            except psycopg.OperationalError as error:
                raise ServerError(f"A connection broke before its counts could be read: {error}") from error
        self._run(statement)

    def _usage(self) -> processes.Usage | None:
        try:
            return processes.usage(self._server)
        except CannotMeasure:
            return None

    def _wait_for_leavers(self, since: str, connections, patience: float = 2.0) -> list[int]:
        """Wait until other backends that worked since then have left; the pids that stayed.

        A backend leaves this list after it has handed in its counts.
        """
        ours = [self._pid, *(conn.info.backend_pid for conn in connections)]
        deadline = time.monotonic() + patience
        while True:
            # not the view pg_stat_activity, which joins catalogs
            rows = self._run(
                "SELECT pid FROM pg_stat_get_activity(NULL) WHERE datid = %s AND pid <> ALL(%s)"
                " AND usesysid IS NOT NULL AND (state_change >= %s::timestamptz OR state <> 'idle')",
                [self._database, ours, since],
            )
            if not rows or time.monotonic() > deadline:
                return [row["pid"] for row in rows]
            time.sleep(0.02)

    # -- subtraction -----------------------------------------------------------

    def _fill(self, delta: Delta, before: dict, after: dict) -> None:
        delta.start_lsn, delta.end_lsn = before["lsn"], after["lsn"]
        delta.wal_bytes = _position(after["lsn"]) - _position(before["lsn"])
        changes = {name: _subtract(after[name], before[name]) for name in _KEYS if name in after}
        for name in ("wal", "checkpointer", "bgwriter", "database"):
            if name in changes:
                setattr(delta, name, changes[name].iloc[0].to_dict())
        for counts in (delta.wal, delta.bgwriter, delta.database):
            if counts and min(counts.values()) < 0:
                raise ServerError(
                    "The server's statistics went backwards inside a measured block: it crashed, or "
                    "somebody called pg_stat_reset. The block can't be counted; run it again."
                )
        if "io" in changes:
            delta.io = self._without_probe(changes["io"], changes.get("own_io")).reset_index()
        if "slru" in changes:
            delta.slru = _changed(changes["slru"]).reset_index()
        delta.relations = self._relations(changes["relations"])

    @staticmethod
    def _without_probe(io: pd.DataFrame, own: pd.DataFrame | None) -> pd.DataFrame:
        if own is not None:
            io = io.sub(own.reindex(io.index, fill_value=0))
        return _changed(io, constant=["op_bytes"])

    def _relations(self, changes: pd.DataFrame) -> pd.DataFrame:
        changes = changes[(changes >= 0).all(axis=1)]  # a dropped relation takes its counts along
        counts = _changed(changes)
        counts.insert(0, "read", counts.pop("fetched") - counts["hit"])
        frame = self._names.join(counts, how="inner")
        return frame.sort_values(["read", "hit"], ascending=False, ignore_index=True)


def _numbers(rows: list[dict], keys: list[str]) -> pd.DataFrame:
    """Rows as a frame of numbers indexed by the key columns; times of reset left out."""
    # column by column: to let pandas find out the types would take longer than many a measured block
    counted = [name for name in rows[0] if name not in (*keys, "stats_reset")]
    labels = [[row[key] for row in rows] for key in keys]
    index = pd.MultiIndex.from_arrays(labels, names=keys) if len(keys) > 1 else pd.Index(*labels, name=keys[0]) if keys else None
    return pd.DataFrame({name: _column([row[name] for row in rows]) for name in counted}, index=index)


def _column(values: list) -> np.ndarray:
    """Whole numbers if all are, else floats; nothing counts as 0."""
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([0 if value is None else value for value in values], dtype=float)


def _subtract(after: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    change = after - before.reindex(after.index, fill_value=0)
    if "op_bytes" in after:  # a size, not a count
        change["op_bytes"] = after["op_bytes"]
    return change


def _changed(frame: pd.DataFrame, constant=()) -> pd.DataFrame:
    counts = frame.drop(columns=list(constant), errors="ignore")
    return frame[(counts != 0).any(axis=1)].copy()


def _position(lsn: str) -> int:
    """Byte position in the WAL of an LSN such as "0/1A2B3C4"."""
    high, low = lsn.split("/")
    return int(high, 16) * 2**32 + int(low, 16)


def _walinspect(conn: psycopg.Connection, function: str) -> None:
    [present] = conn.execute("SELECT to_regprocedure(%s) IS NOT NULL", [function]).fetchone()
    if not present:
        raise CannotMeasure(
            "contrib:pg_walinspect",
            f"The WAL can't be read by {function.split('(')[0]}: the extension pg_walinspect of "
            "PostgreSQL 16 or later isn't installed in this database (it needs a superuser).",
        )


def _flush_wal(conn: psycopg.Connection) -> None:
    """Make the WAL readable up to now: only flushed WAL can be inspected.

    A transaction that has written something and commits synchronously does it.
    """
    with conn.transaction():
        conn.execute("SET LOCAL synchronous_commit = on")
        conn.execute("SELECT pg_logical_emit_message(true, 'pgrerun', '')")


def _inspect(conn: psycopg.Connection, sql: str, parameters: list) -> list[dict]:
    _flush_wal(conn)
    try:
        return conn.cursor(row_factory=dict_row).execute(sql, parameters).fetchall()
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure(
            "superuser", f"The WAL can't be read here: {error.diag.message_primary}. It takes a superuser."
        ) from None


def wal_blocks(conn: psycopg.Connection, start_lsn: str, end_lsn: str) -> pd.DataFrame:
    """Pages of relations that the WAL between two positions changes.

    Columns: relation (None if it is gone, or in another database), fork ("main",
    "fsm", "vm", "init"), blocks_distinct (pages), records, fpi_bytes; one row per
    relation and fork. Needs pg_walinspect of PostgreSQL 16 (CannotMeasure).
    """
    _walinspect(conn, "pg_get_wal_block_info(pg_lsn,pg_lsn,boolean)")
    rows = _inspect(
        conn,
        """
        SELECT pg_filenode_relation(reltablespace, relfilenode)::regclass::text AS relation,
               (ARRAY['main', 'fsm', 'vm', 'init'])[relforknumber + 1] AS fork,
               count(DISTINCT relblocknumber) AS blocks_distinct,
               count(*) AS records, coalesce(sum(block_fpi_length), 0)::bigint AS fpi_bytes
        FROM pg_get_wal_block_info(%s, %s, false)
        GROUP BY reltablespace, reldatabase, relfilenode, relforknumber
        ORDER BY records DESC, relation, fork""",
        [start_lsn, end_lsn],
    )
    return pd.DataFrame(rows, columns=["relation", "fork", "blocks_distinct", "records", "fpi_bytes"])


def wal_records(conn: psycopg.Connection, start_lsn: str, end_lsn: str) -> pd.DataFrame:
    """WAL between two positions by kind of record.

    Columns: resource_manager, record_type, records, bytes (headers included,
    padding between records not), fpi_bytes; most bytes first. Needs pg_walinspect
    (CannotMeasure).
    """
    _walinspect(conn, "pg_get_wal_records_info(pg_lsn,pg_lsn)")
    rows = _inspect(
        conn,
        """
        SELECT resource_manager, record_type, count(*) AS records,
               sum(record_length)::bigint AS bytes, sum(fpi_length)::bigint AS fpi_bytes
        FROM pg_get_wal_records_info(%s, %s)
        GROUP BY resource_manager, record_type ORDER BY bytes DESC, resource_manager, record_type""",
        [start_lsn, end_lsn],
    )
    return pd.DataFrame(rows, columns=["resource_manager", "record_type", "records", "bytes", "fpi_bytes"])
