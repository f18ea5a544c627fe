"""Commit, crash and rollback: what has to be written, and what has to be undone."""

from dataclasses import dataclass

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import REPORT_BATCH, relations
from pgrerun.instruments import counters, pgbench


@dataclass(frozen=True)
class Recovery:
    """What a server showed that was killed with committed and uncommitted work behind it.

    `committed`: transactions that pgbench was told had committed. `kept`: history tuples
    after recovery. `balanced`: whether the four relations agree after recovery.
    `data_pages_written`: pages of relations written before the crash, by anyone.
    `undo_lines`: lines of the server log that speak of an undo pass. `redo_lines`: of redo.
    `uncommitted_visible`: tuples of the open transaction that recovery let through.
    """

    committed: int
    kept: int
    balanced: bool
    data_pages_written: float
    redo_lines: int
    undo_lines: int
    uncommitted_visible: int


def crash(chapter: Chapter, transactions: int = REPORT_BATCH) -> Recovery:
    """Commit the report's 300 transactions, leave one more open, and kill every server process.

    The pool is PostgreSQL's default, so nothing forces a changed page out before the crash.
    """
    cluster, tp1 = chapter.cluster(), relations(chapter)
    tp1.load(cluster)
    with cluster.connect() as connection:
        connection.execute("CHECKPOINT")
    with counters.Counters(cluster) as counter, counter.measured() as delta:
        done = pgbench.run(
            cluster, tp1.script(), transactions=transactions, variables=tp1.variables(cluster),
            seed=chapter.parameters.seed,
        )
    undecided = cluster.connect(autocommit=False)
    undecided.execute("UPDATE account SET string = 'undecided'")
    logged = len(cluster.log())
    cluster.crash()
    undecided.close()
    cluster.start()
    log = cluster.log()[logged:].lower()
    with cluster.connect() as connection:
        kept, = connection.execute("SELECT count(*) FROM history").fetchone()
        visible, = connection.execute("SELECT count(*) FROM account WHERE string = 'undecided'").fetchone()
        balanced = tp1.check(connection).consistent
    return Recovery(
        done.transactions, kept, balanced, delta.writes.sum(), log.count("redo"), log.count("undo"), visible
    )


def seen(recovery: Recovery | None) -> pd.DataFrame | None:
    """The same, one row per finding, for the page."""
    if recovery is None:
        return None
    rows = {
        "transactions committed before the crash": recovery.committed,
        "history tuples after recovery": recovery.kept,
        "balances of the four relations agree": recovery.balanced,
        "pages of relations written before the crash": int(recovery.data_pages_written),
        "lines of the server's log about an undo": recovery.undo_lines,
        "changed tuples of the open transaction that are visible": recovery.uncommitted_visible,
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def rollback(chapter: Chapter) -> pd.DataFrame:
    """WAL bytes of replacing every account in one transaction, and of taking that back.

    Columns: step ("update", "rollback"), wal_bytes.
    """
    server = chapter.server
    relations(chapter).load(server)
    position = "SELECT pg_current_wal_insert_lsn() - '0/0'"
    places = []
    with server.connect() as connection:
        for statement in ("BEGIN", "UPDATE account SET balance = balance + 10.0", "ROLLBACK"):
            connection.execute(statement)
            places.append(int(connection.execute(position).fetchone()[0]))
    before, between, after = places
    return pd.DataFrame({"step": ["update", "rollback"], "wal_bytes": [between - before, after - between]})


def log_by_kind(chapter: Chapter, transactions: int = REPORT_BATCH) -> pd.DataFrame:
    """WAL bytes per transaction by resource manager: how much of the log is transaction status."""
    cluster, tp1 = chapter.cluster(), relations(chapter)
    cluster.extension("pg_walinspect")
    tp1.load(cluster)
    position = "SELECT pg_current_wal_insert_lsn()::text"
    with cluster.connect() as connection:
        [start] = connection.execute(position).fetchone()
        pgbench.run(cluster, tp1.script(), transactions=transactions, variables=tp1.variables(cluster), seed=chapter.parameters.seed)
        [end] = connection.execute(position).fetchone()
        records = counters.wal_records(connection, start, end)
    by_kind = records.groupby("resource_manager")[["records", "bytes", "fpi_bytes"]].sum() / transactions
    return by_kind.sort_values("bytes", ascending=False).reset_index()


def flush_facts(recovery: Recovery | None) -> dict[str, bool] | None:
    """The report's rule that a transaction's pages must be on disk before it commits."""
    if recovery is None:
        return None
    return {
        "a commit writes the pages it changed": recovery.data_pages_written > 0,
        "without that a crash loses committed changes": recovery.kept < recovery.committed or not recovery.balanced,
    }


def undo_facts(recovery: Recovery | None, log: pd.DataFrame | None) -> dict[str, bool] | None:
    """The report's claim for storage that never overwrites: nothing to undo, only status to log."""
    if recovery is None or log is None:
        return None
    status = log.set_index("resource_manager")["bytes"]
    return {
        "recovery undoes nothing": recovery.undo_lines == 0 and recovery.uncommitted_visible == 0,
        "the log holds transaction status and nothing else": bool(status.drop("Transaction").sum() == 0),
    }
