"""Commit, crash and rollback: what has to be written, and what has to be undone."""

from dataclasses import dataclass

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.variants import REPORT_BATCH, SQL, TRANSACTION, relations
from pgrerun.lab.instruments import counters, pgbench, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster

NEVER_COMMITTED = b"never committed"  # as sql/commit.sql writes it


@dataclass(frozen=True)
class Recovery:
    """What a server showed that was killed with committed and uncommitted work behind it.

    committed            transactions that pgbench was told had committed
    kept                 history tuples after recovery
    balanced             whether the four relations agree after recovery
    data_pages_written   pages of relations written before the crash, by anyone
    uncommitted_on_disk  the open transaction's versions in the file of the server that was killed
    uncommitted_left     those in the file after recovery
    uncommitted_visible  those that a query finds after recovery
    former_visible       versions that they were to replace, which a query finds after recovery
    """

    committed: int
    kept: int
    balanced: bool
    data_pages_written: float
    uncommitted_on_disk: int
    uncommitted_left: int
    uncommitted_visible: int
    former_visible: int


@experiment(claims=["lai-056", "lai-057"])
def crash(chapter: Chapter, transactions: int = REPORT_BATCH) -> Recovery:
    """Commit the report's 300 transactions, leave one more open, and kill every server process.

    A checkpoint writes the open transaction's versions, before the others begin. The pool is
    PostgreSQL's default, so nothing forces one of their pages out before the crash.
    """
    cluster, bank = chapter.cluster(), relations(chapter)
    bank.load(cluster)
    with cluster.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "undecided", SQL.text("commit.undecided"))
            SQL.run(connection, "commit.fill_undecided")
        [path] = SQL.run(connection, "commit.file").fetchone()
    with counters.Counters(cluster) as counter:
        undecided = cluster.connect(autocommit=False)
        SQL.run(undecided, "commit.leave_undecided")
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")
        with counter.measured(idle=[undecided]) as delta:
            done = _run(chapter, cluster, transactions)
    cluster.crash()
    undecided.close()
    file = cluster.data_directory / path
    on_disk = file.read_bytes().count(NEVER_COMMITTED)
    cluster.start()
    left = file.read_bytes().count(NEVER_COMMITTED)
    with cluster.connect() as connection:
        kept, former, visible = SQL.run(connection, "commit.after_recovery").fetchone()
        balanced = bank.check(connection).consistent
    written = delta.writes.sum()
    return Recovery(done.transactions, kept, balanced, written, on_disk, left, visible, former)


def _run(chapter: Chapter, cluster: Cluster, transactions: int) -> pgbench.PgbenchResult:
    return pgbench.run(
        cluster,
        SQL.script(TRANSACTION),
        transactions=transactions,
        variables=relations(chapter).variables(cluster),
        seed=chapter.parameters.seed,
    )


@experiment(claims=["lai-057"])
def wal_by_kind(chapter: Chapter, transactions: int = REPORT_BATCH) -> pd.DataFrame:
    """WAL per transaction by resource manager: how much of it is transaction status.

    Columns: resource_manager, records, bytes, fpi_bytes; most bytes first.
    """
    cluster = chapter.cluster()
    cluster.extension("pg_walinspect")
    relations(chapter).load(cluster)
    with cluster.connect() as connection:
        with wal.written(connection) as written:
            _run(chapter, cluster, transactions)
        records = wal.records(connection, written.start, written.end)
    columns = ["records", "bytes", "fpi_bytes"]
    by_kind = records.groupby("resource_manager")[columns].sum() / transactions
    return by_kind.sort_values("bytes", ascending=False).reset_index()
