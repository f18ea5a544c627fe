"""WAL: positions are PostgreSQL's own, and what a block wrote is what its parts wrote."""

import pytest

from pgrerun.errors import RerunError
from pgrerun.lab.instruments import wal


@pytest.fixture
def connection(cluster):
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE written (n int)")
        yield connection
        connection.execute("DROP TABLE written")


def test_a_position_is_postgresqls_own_in_bytes(connection):
    before = wal.position(connection)
    query = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    [[now]] = connection.execute(query).fetchall()
    connection.execute("INSERT INTO written SELECT generate_series(1, 1000)")
    assert before <= now < wal.position(connection)


def test_a_block_counts_what_it_wrote_and_nothing_before(connection):
    connection.execute("INSERT INTO written SELECT generate_series(1, 1000)")
    with wal.written(connection) as found:
        connection.execute("INSERT INTO written SELECT generate_series(1, 1000)")
        with pytest.raises(RerunError, match="when the block has ended"):
            _ = found.bytes
    assert found.bytes == found.end - found.start
    assert found.bytes > 1000 * 32  # a record of each tuple is longer than its tuple


def test_records_are_those_between_two_positions(cluster, connection):
    cluster.extension("pg_walinspect")
    connection.execute("INSERT INTO written SELECT generate_series(1, 500)")
    connection.execute("CHECKPOINT")
    with wal.written(connection) as found, connection.transaction():
        # not flushed by its commit: reading the WAL has to see to that
        connection.execute("SET LOCAL synchronous_commit = off")
        connection.execute("INSERT INTO written SELECT generate_series(1, 500)")
    records = wal.records(connection, found.start, found.end)
    kinds = records.set_index(["resource_manager", "record_type"])["records"]
    assert kinds["Heap"].filter(like="INSERT").sum() == 500 and ("Transaction", "COMMIT") in kinds
    assert 0 < records["bytes"].sum() <= found.bytes
    assert records["fpi_bytes"].sum() > 0  # the first change of a page after a checkpoint
    assert wal.records(connection, found.end, found.end).empty


def test_positions_over_time_never_go_back_and_end_where_the_work_does(cluster, connection):
    with wal.positions(cluster, every=0.01) as positions, wal.written(connection) as written:
        connection.execute("INSERT INTO written SELECT generate_series(1, 1000)")
    times, ends = zip(*positions, strict=True)
    assert list(times) == sorted(times) and list(ends) == sorted(ends)
    assert ends[-1] >= written.end
