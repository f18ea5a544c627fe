"""A pgbench script in the server: the same transactions, one seed, one sequence of numbers."""

import psycopg
import pytest

from pgrerun.errors import ParameterError
from pgrerun.lab.instruments import server_load

SCRIPT = r"""
\set aid random(1, :rows)
\set delta random(-5, 5)
\set half (:aid + 1) / 2
BEGIN;
UPDATE loaded SET balance = balance + :delta
  WHERE id = :aid;
SELECT balance FROM loaded WHERE id = :aid;
INSERT INTO drawn VALUES (:n, :aid, :delta, :half, '12:30'::time);
END;
"""


RELATIONS = """
CREATE TABLE loaded (id int PRIMARY KEY, balance int);
INSERT INTO loaded SELECT g, 0 FROM generate_series(1, 20) g;
CREATE TABLE drawn (n int, aid int, delta int, half int, at time);
"""


@pytest.fixture
def connection(connection):
    connection.execute(RELATIONS)
    return connection


def _drawn(connection, **given):
    """The numbers that twenty transactions draw."""
    server_load.run(connection, SCRIPT, 20, variables={"rows": 20}, **given)
    rows = connection.execute("SELECT aid, delta FROM drawn ORDER BY n").fetchall()
    connection.execute("TRUNCATE drawn")
    return rows


def test_every_transaction_is_run_and_commits_alone(connection):
    server_load.run(connection, SCRIPT, 200, variables={"rows": 20}, seed=3)
    drawn = "SELECT count(*), count(DISTINCT xmin::text), min(n), max(n) FROM drawn"
    assert connection.execute(drawn).fetchone() == (200, 200, 1, 200)
    ends = "SELECT min(aid), max(aid), min(delta), max(delta) FROM drawn"
    assert connection.execute(ends).fetchone() == (1, 20, -5, 5)
    true = (
        "SELECT bool_and(half = (aid + 1) / 2),"
        " (SELECT sum(balance) FROM loaded) = sum(delta) FROM drawn"
    )
    assert connection.execute(true).fetchone() == (True, True)


def test_numbers_follow_from_the_seed_and_go_on_without_one(connection):
    first = _drawn(connection, seed=7)
    assert _drawn(connection, seed=7) == first != _drawn(connection)


def test_brackets_in_bounds_and_statements_without_numbers(connection):
    script = "\\set aid random(1, greatest(:rows - 5, 1))\nINSERT INTO drawn (aid) VALUES (:aid);\n"
    server_load.run(connection, script, 300, variables={"rows": 20}, seed=1)
    assert connection.execute("SELECT max(aid) FROM drawn").fetchone() == (15,)
    server_load.run(connection, "UPDATE loaded SET balance = balance + 1 WHERE id = 1;", 10)
    assert connection.execute("SELECT balance FROM loaded WHERE id = 1").fetchone() == (10,)


def test_the_sessions_own_setting_comes_back(connection):
    connection.execute("SET synchronous_commit = local")
    insert = "INSERT INTO drawn (at) VALUES (current_setting('synchronous_commit') = 'off');"
    connection.execute("ALTER TABLE drawn ALTER at TYPE bool USING NULL")
    server_load.run(connection, insert, 2)
    assert connection.execute("SELECT DISTINCT at FROM drawn").fetchall() == [(True,)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        server_load.run(connection, "UPDATE nowhere SET n = 1;", 2)
    assert connection.execute("SHOW synchronous_commit").fetchone() == ("local",)


def test_what_cant_be_run_in_the_server_is_said(cluster, connection):
    with pytest.raises(ParameterError, match="gset"):
        server_load.run(connection, "SELECT 1 AS one;\n\\gset\n", 1)
    with (
        cluster.connect(autocommit=False) as other,
        pytest.raises(ParameterError, match="autocommit"),
    ):
        server_load.run(other, SCRIPT, 1, variables={"rows": 20})
