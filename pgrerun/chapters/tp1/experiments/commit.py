"""Commit, crash and rollback: what has to be written, and what has to be undone."""

from collections.abc import Iterator

from pgrerun.chapters.tp1.variants import REPORT_BATCH, SQL, relations, run
from pgrerun.lab.instruments import counters, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.testbed import Row, Testbed, experiment

NEVER_COMMITTED = b"never committed"  # as sql/commit.sql writes it


@experiment(
    units={
        "committed": "transactions",
        "kept": "history rows",
        "balanced": "yes or no",
        "data_pages_written": "pages",
        "uncommitted_on_disk": "versions",
        "uncommitted_left": "versions",
        "uncommitted_visible": "versions",
        "former_visible": "versions",
    }
)
def crash(bed: Testbed, transactions: int = REPORT_BATCH) -> Iterator[Row]:
    """Commit the report's 300 transactions, leave one more open, and kill every server process.

    A checkpoint writes the open transaction's versions, before the others begin. The pool is
    PostgreSQL's default, so nothing forces one of their pages out before the crash. `committed` is
    what pgbench was told; `kept` and `balanced` are what recovery left of that. Of the open
    transaction's versions: those in the file of the server that was killed and in the file after
    recovery, those that a query finds then, and how many versions before them it finds.
    """
    cluster, bank = bed.cluster(), relations(bed)
    bank.load(cluster)
    with cluster.connect() as connection:
        made = [*SQL.each("commit.undecided"), *SQL.each("commit.fill_undecided")]
        loading.make(connection, "undecided", *made)
        [path] = SQL.run(connection, "commit.file").fetchone()
    with counters.Counters(cluster) as counter:
        undecided = cluster.connect(autocommit=False)
        SQL.run(undecided, "commit.leave_undecided")
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")
        with counter.measured(idle=[undecided]) as delta:
            done = run(cluster, bank, transactions, bed.parameters.seed)
    cluster.crash()
    undecided.close()
    file = cluster.data_directory / path
    on_disk = file.read_bytes().count(NEVER_COMMITTED)
    cluster.start()
    left = file.read_bytes().count(NEVER_COMMITTED)
    with cluster.connect() as connection:
        kept, former, visible = SQL.run(connection, "commit.after_recovery").fetchone()
        balanced = bank.is_consistent(connection)
    yield {
        "committed": done.transactions,
        "kept": kept,
        "balanced": bool(balanced),
        "data_pages_written": float(delta.writes.sum()),
        "uncommitted_on_disk": on_disk,
        "uncommitted_left": left,
        "uncommitted_visible": visible,
        "former_visible": former,
    }


@experiment(
    units={
        "records": "records/transaction",
        "bytes": "bytes/transaction",
        "fpi_bytes": "bytes/transaction",
    }
)
def wal_by_kind(bed: Testbed, transactions: int = REPORT_BATCH) -> Iterator[Row]:
    """WAL per transaction by resource manager, most bytes first: how much of it is status."""
    cluster, bank = bed.cluster(), relations(bed)
    cluster.extension("pg_walinspect")
    bank.load(cluster)
    with cluster.connect() as connection:
        with wal.written(connection) as written:
            run(cluster, bank, transactions, bed.parameters.seed)
        records = wal.records(connection, written.start, written.end)
    columns = ["records", "bytes", "fpi_bytes"]
    by_kind = records.groupby("resource_manager")[columns].sum() / transactions
    yield from by_kind.sort_values("bytes", ascending=False).reset_index().to_dict("records")
