"""Counters against known work: an idle window, a tiny pool, an old release, a reset."""

import pytest
from servers import tell

from pgrerun.errors import ServerError
from pgrerun.lab.instruments import counters, pgbench
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.server import Cluster


@pytest.fixture(scope="module")
def tiny():
    """The default of 1990: sixteen pages, so that nothing stays cached for the probe."""
    with Cluster(settings={"shared_buffers": "128kB", "max_connections": 20}) as cluster:
        tell(
            cluster,
            "CREATE TABLE account (id int PRIMARY KEY, balance int, filler char(80))",
            "INSERT INTO account SELECT g, 0, 'x' FROM generate_series(1, 5000) g",
            "VACUUM ANALYZE account",
        )
        yield cluster


@pytest.fixture
def probe(tiny):
    with Counters(tiny) as counters:
        yield counters


def row(frame, relation):
    [found] = frame[frame["relation"] == relation].to_dict("records")
    return found


def test_an_idle_window_is_empty_even_with_sixteen_pages(probe):
    with probe.measured() as idle:
        pass
    assert idle.relations.empty
    assert idle.io.empty
    assert idle.reads.sum() == idle.writes.sum() == idle.wal_bytes == 0


def test_a_scan_is_counted_page_by_page(tiny, probe):
    with tiny.connect() as conn:
        pages = conn.execute("SELECT pg_relation_size('account') / 8192").fetchone()[0]
        conn.execute("SELECT sum(balance) FROM account")  # plan and catalogs are warm now
        with probe.measured(conn) as delta:
            conn.execute("SELECT sum(balance) FROM account")
    account = row(delta.relations, "account")
    assert account["kind"] == "table" and account["read"] + account["hit"] == pages
    assert account["read"] > 0.8 * pages  # sixteen pages can't hold them
    assert account["tuples_returned"] == 5000
    assert delta.reads["client backend"] == delta.relations["read"].sum()


def test_updates_show_in_tuples_wal_and_a_later_checkpoint(tiny, probe):
    with tiny.connect() as conn:
        before = counters.checkpoints(conn)
        for _ in range(2):  # the second has its plan
            with probe.measured(conn) as delta:
                conn.execute("UPDATE account SET balance = balance + 1 WHERE id = 77")
        account = row(delta.relations, "account")
        assert (account["updated"], account["inserted"]) == (1, 0)
        assert row(delta.relations, "account_pkey")["table"] == "account"
        assert delta.wal_bytes >= delta.wal["wal_bytes"] > 0
        with probe.measured(conn) as delta:
            conn.execute("CHECKPOINT")
        assert delta.writes["checkpointer"] > 0
        assert counters.checkpoints(conn) == before + 1


def test_relations_born_in_the_window_have_names_and_counts(tiny, probe):
    with tiny.connect() as conn:
        with probe.measured(conn) as delta:
            conn.execute("CREATE TABLE born AS SELECT g AS id FROM generate_series(1, 100) g")
        assert row(delta.relations, "born")["inserted"] == 100
        kinds = set(delta.relations["kind"])
        assert {"catalog table", "catalog index"} <= kinds
        with probe.measured(conn) as delta:
            conn.execute("DROP TABLE born")
        assert "born" not in set(delta.relations["relation"])


def test_backends_that_end_have_handed_in_everything(tiny, probe):
    script = "UPDATE account SET balance = balance + 1 WHERE id = 1 + :client_id;"
    with probe.measured() as delta:
        result = pgbench.run(tiny, script, clients=3, transactions=50)
    assert result.transactions == 150
    assert row(delta.relations, "account")["updated"] == 150


def test_commits_that_wait_are_flushes_and_timed_where_the_server_times_them(tiny, probe):
    with tiny.connect() as conn:
        for setting, timed in (("off", False), ("on", True)):
            conn.execute(f"SET track_wal_io_timing = {setting}")
            with probe.measured(conn) as delta:
                for _ in range(5):
                    conn.execute("UPDATE account SET balance = balance + 1 WHERE id = 1")
            flushes, seconds = delta.wal_flushes
            assert flushes >= 5 and (seconds > 0) == timed
        conn.execute("SET synchronous_commit = off")
        with Counters(tiny, settle=0) as hasty, hasty.measured(conn) as delta:
            conn.execute("SELECT 1")
        assert delta.wal_flushes == (0, 0)


def test_an_open_transaction_is_refused(tiny, probe):
    with tiny.connect() as conn:
        conn.autocommit = False
        with pytest.raises(ServerError, match="inside a transaction"), probe.measured(conn):
            conn.execute("SELECT 1")


def test_a_reset_inside_the_window_is_refused(tiny, probe):
    with tiny.connect() as conn:
        conn.execute("UPDATE account SET balance = 0 WHERE id = 9")
        with pytest.raises(ServerError, match="backwards"), probe.measured(conn):
            conn.execute("SELECT pg_stat_reset(), pg_stat_reset_shared('wal')")
