"""pgbench's relations: the same tuples as `pgbench -i` makes, and what may differ on request."""

import pytest

from pgrerun.errors import ParameterError, ServerError
from pgrerun.lab.instruments import pgbench as load
from pgrerun.lab.relations import Pgbench
from pgrerun.lab.relations.pgbench import SCATTERED, Index


@pytest.fixture
def connection(cluster):
    with cluster.connect() as connection:
        connection.execute("CREATE SCHEMA bank")
        connection.execute("SET search_path = bank")
        yield connection
        connection.execute("DROP SCHEMA bank CASCADE")


def _attributes(connection, schema):
    query = """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = %s::regnamespace AND a.attnum > 0 AND c.relkind IN ('r', 'i')
        ORDER BY c.relname, a.attnum"""
    return connection.execute(query, [schema]).fetchall()


def test_relations_are_those_of_pgbench(cluster, connection):
    Pgbench(branches=2).load(connection)
    connection.execute("CREATE SCHEMA theirs")
    try:
        theirs = f"{cluster.conninfo()} options=-csearch_path=theirs"
        cluster.tool("pgbench", "-i", "-q", "-s", 2, theirs)
        assert _attributes(connection, "bank") == _attributes(connection, "theirs")
        for name in ("pgbench_branches", "pgbench_tellers", "pgbench_accounts"):
            differing = f"SELECT * FROM bank.{name} EXCEPT SELECT * FROM theirs.{name}"
            assert connection.execute(differing).fetchall() == []
            sizes = f"SELECT pg_relation_size('bank.{name}') = pg_relation_size('theirs.{name}')"
            assert connection.execute(sizes).fetchone() == (True,)
    finally:
        connection.execute("DROP SCHEMA theirs CASCADE")


def test_fillfactor_indexes_and_autovacuum(connection):
    bank = Pgbench(accounts_per_branch=100, prefix="")
    indexes = [
        Index("accounts", "off", "(abalance) WHERE abalance IS NULL"),
        Index("tellers", "blocks", "USING brin (tbalance)"),
    ]
    bank.load(connection, fillfactor={"accounts": 90}, indexes=indexes)
    query = "SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'bank'::regnamespace"
    options = dict(connection.execute(query).fetchall())
    assert options["accounts"] == ["fillfactor=90", "autovacuum_enabled=off"]
    assert options["history"] == ["autovacuum_enabled=off"]
    assert {"accounts_off", "tellers_blocks", "accounts_pkey"} <= set(options)
    bank.load(connection, autovacuum=True)
    assert set(dict(connection.execute(query).fetchall()).values()) == {None}


def test_accounts_alone_in_another_order(connection):
    bank = Pgbench(accounts_per_branch=500)
    bank.load_accounts(connection, "scattered", order=SCATTERED)
    keys = [row[0] for row in connection.execute("SELECT aid FROM scattered ORDER BY ctid")]
    assert sorted(keys) == list(range(1, 501)) != keys
    assert bank.has_accounts(connection, "scattered") and not bank.is_loaded(connection)
    assert not Pgbench(accounts_per_branch=501).has_accounts(connection, "scattered")


def test_scripts_of_pgbench_run_on_them(cluster):
    bank = Pgbench(branches=2, accounts_per_branch=1000)
    with cluster.connect() as connection:
        bank.load(connection)
        try:
            assert bank.is_loaded(connection)
            done = load.run(
                cluster,
                "\\set aid random(:accounts, :accounts)\n"
                "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n",
                transactions=5,
                variables=bank.variables,
            )
            assert done.transactions == 5
            query = "SELECT abalance FROM pgbench_accounts WHERE aid = 2000"
            assert connection.execute(query).fetchone() == (5,)
        finally:
            connection.execute(f"DROP TABLE {', '.join(bank.relations.values())}")


def test_somebodys_relations_and_senseless_numbers(connection):
    connection.execute("CREATE TABLE accounts (precious int)")
    with pytest.raises(ServerError, match="left alone"):
        Pgbench(accounts_per_branch=10, prefix="").load(connection)
    assert connection.execute("SELECT to_regclass('branches') IS NULL").fetchone() == (True,)
    with pytest.raises(ParameterError, match="at least one"):
        Pgbench(branches=0)
    with pytest.raises(ParameterError, match="not customers"):
        Pgbench().load(connection, fillfactor={"customers": 50})
