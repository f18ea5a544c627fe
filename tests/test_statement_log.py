"""What is sent is told: statements, files they come from, pgbench's loads; timed blocks cost it."""

from types import SimpleNamespace

import pytest

from pgrerun.lab import statement_log, statements
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import bundled
from pgrerun.lab.testbed import Testbed, experiment
from pgrerun.page import narrate


def test_statements_are_counted_by_their_kind(cluster):
    with cluster.connect() as connection, statement_log.record() as account:
        for n in (1, 22, 333):
            connection.execute(f"SELECT {n} AS a1")
        connection.execute(b"SELECT  'x7'")
        connection.execute("SELECT 'x7'")
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE sent_t (n int)")
            cursor.executemany("INSERT INTO sent_t VALUES (%s)", [(1,), (2,)])
            with cursor.copy("COPY sent_t FROM STDIN") as copy:
                copy.write_row((3,))
    assert account.statements() == [
        ("SELECT 1 AS a1", 3),
        ("SELECT  'x7'", 2),
        ("CREATE TEMPORARY TABLE sent_t (n int)", 1),
        ("INSERT INTO sent_t VALUES (%s)", 1),
        ("COPY sent_t FROM STDIN", 1),
    ]


def test_nothing_is_kept_outside_of_an_account_or_where_it_rests(cluster):
    with cluster.connect() as connection:
        connection.execute("SELECT 1")
        with statement_log.record() as account:
            with statement_log.pause():
                connection.execute("SELECT 2")
            connection.execute("SELECT 3")
        connection.execute("SELECT 4")
    assert account.statements() == [("SELECT 3", 1)]


@pytest.mark.parametrize(("warmup", "often"), [(1, 2), (0, 14)])
def test_timed_blocks_are_not_counted_where_a_warm_up_sent_the_same(cluster, warmup, often):
    def measure(block, variant):
        cluster.fetch("SELECT 5")
        return {"x": 1.0}

    @experiment(units={"x": "s"})
    def planted(bed):
        yield from bed.compare(measure, {"variant": ["a", "b"]}, warmup=warmup)

    kept = []
    bed = Testbed(SimpleNamespace(pairs=7, seed=1), bundled(), rows=lambda _: kept)
    with statement_log.record() as account:
        for row in bed.measure(planted, {}):
            kept.append(row)
    assert account.statements() == [("SELECT 5", often)]


def test_loads_and_files_are_told(cluster, tmp_path):
    (tmp_path / "a.sql").write_text("-- name: one\nSELECT :n;\n")
    (tmp_path / "b.pgbench").write_text("SELECT 1;\n")
    files = statements.Statements(tmp_path)
    with cluster.connect() as connection, statement_log.record() as account:
        files.run(connection, "a.one", n=7)
        pgbench.run(cluster, files.script("b"), clients=2, transactions=5, protocol="prepared")
    assert account.sources == {"a.one": "SELECT :n;", "b.pgbench": "SELECT 1;\n"}
    assert account.loads == {
        statement_log.Load("SELECT 1;\n", "prepared", 2, "5 transactions of each client"): 1
    }


def test_also_what_is_not_kept_is_counted(cluster, monkeypatch):
    monkeypatch.setattr(statement_log, "MOST", 2)
    with cluster.connect() as connection, statement_log.record() as account:
        for name in "abcaab":
            connection.execute(f"SELECT '{name}'")
    assert account.statements() == [("SELECT 'a'", 3), ("SELECT 'b'", 2)] and account.times == 6


LOAD = {"script": "SELECT 1;", "protocol": "simple", "clients": 4, "length": "3 s", "times": 2}
RUN = {"statements": [["SELECT 1", 40], ["VACUUM", 1]], "left_out": 0, "loads": [LOAD]}


@pytest.mark.parametrize(
    ("account", "counted"),
    [
        (RUN, ["2 distinct statements, sent 41 times", "4 clients"]),
        (RUN | {"times": 41}, ["2 distinct statements, sent 41 times"]),
        (RUN | {"left_out": 3, "times": 90}, ["5 distinct statements, sent 90 times"]),
        (
            RUN | {"left_out": 3},
            ["5 distinct statements, of which the first 2 were sent 41 times"],
        ),
        (RUN | {"statements": []}, ["What was run: pgbench with 4 clients"]),
        (RUN | {"statements": [], "loads": []}, []),
    ],
)
def test_what_was_run_is_a_sentence_and_of_nothing_none(account, counted):
    said = narrate.run(account)
    assert bool(said) == bool(counted) and [one for one in counted if one not in said] == []
