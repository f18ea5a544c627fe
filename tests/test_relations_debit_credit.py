"""TP1: the relations, the transaction in all its variants under pgbench, and its invariant."""

import random
from unittest.mock import Mock

import pytest
from servers import tell, until

from pgrerun.chapters.tp1.variants import SQL
from pgrerun.errors import CannotMeasure, ParameterError, ServerError
from pgrerun.lab.relations import DebitCredit
from pgrerun.lab.server import Cluster, open_server

SMALL = DebitCredit(branches=20, tellers=200, accounts=2_000)
FIGURE_2_3 = SQL.script("transaction")


@pytest.fixture(scope="module")
def cluster():
    """Its own, because the relations have names that other tests use as well."""
    with Cluster(settings={"shared_buffers": "16MB", "autovacuum": "off"}) as server:
        yield server


@pytest.fixture
def connection(cluster):
    with cluster.connect() as connection:
        yield connection


def drive(cluster, relations, script, transactions=100, protocol="simple"):
    """Run a script through pgbench; every transaction must succeed."""
    given = [f"-D{name}={value}" for name, value in relations.variables(cluster).items()]
    path = cluster.scratch / "script.sql"
    path.write_text(script)
    how = ("--random-seed=7", "-M", protocol, *given, "-f", f"{path}@1")
    done = cluster.tool("pgbench", "-n", "-t", transactions, *how)
    path.unlink()
    assert f"actually processed: {transactions}/{transactions}" in done.stdout
    assert "ERROR" not in done.stderr
    # its backends hand in their statistics on their way out
    present = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"
    until(lambda: cluster.fetch(present) == (0,))


# --- relations --------------------------------------------------------------------------------


def test_levels_are_the_same_from_metapage_and_size(cluster, monkeypatch):
    relations = DebitCredit(2, 20, 200_000)
    relations.load(cluster)
    by_metapage = relations.facts(cluster)["levels"].dropna().tolist()
    tell(cluster, "DROP EXTENSION pageinspect")
    refused = Mock(side_effect=CannotMeasure("contrib:pageinspect", "not here"))
    monkeypatch.setattr(cluster, "extension", refused)
    by_size = relations.facts(cluster)
    assert set(by_size["levels_from"].dropna()) == {"size"}
    assert by_size["levels"].dropna().tolist() == by_metapage == [1, 1, 3]


def test_repeated_loads_give_the_same_pages(cluster):
    SMALL.load(cluster)
    first = SMALL.facts(cluster)
    drive(cluster, SMALL, FIGURE_2_3)
    assert SMALL.facts(cluster)["tuples"].sum() > first["tuples"].sum()
    SMALL.load(cluster)
    assert SMALL.facts(cluster).equals(first)


def test_load_leaves_nothing_for_readers_to_write(cluster, connection):
    SMALL.load(connection)
    connection.execute("CHECKPOINT")
    for relation in SMALL.tuples:
        plan = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT sum(1) FROM {relation}"
        )
        assert plan.fetchone()[0][0]["Plan"]["Shared Dirtied Blocks"] == 0


def test_fillfactor_and_logging(cluster, connection):
    SMALL.load(cluster)
    packed = SMALL.facts(cluster).set_index("relation")["pages"]
    SMALL.load(cluster, fillfactor=50, logged=False)
    loose = SMALL.facts(cluster).set_index("relation")["pages"]
    assert loose["account"] == pytest.approx(2 * packed["account"], abs=2)
    kinds = (
        "SELECT DISTINCT relpersistence::text FROM pg_class WHERE relname ~"
        " '^(branch|teller|account|history)$'"
    )
    assert connection.execute(kinds).fetchall() == [("u",)]
    with pytest.raises(ParameterError, match="not 5"):
        SMALL.load(cluster, fillfactor=5)


def test_somebody_elses_relation_is_left_alone(cluster, connection):
    SMALL.load(cluster)
    connection.execute(
        "DROP TABLE history; CREATE TABLE history (precious int); INSERT INTO history VALUES (42)"
    )
    try:
        with pytest.raises(ServerError, match="already holds a relation history"):
            DebitCredit.report().load(cluster)
        assert connection.execute("TABLE history").fetchall() == [(42,)]
        assert connection.execute("SELECT count(*) FROM branch").fetchone() == (SMALL.branches,)
    finally:
        connection.execute("DROP TABLE history")


@pytest.mark.parametrize("numbers", [(0, 10, 10), (3, 10, 30), (10, 100, 1_005), (1, 1, -1)])
def test_impossible_numbers_are_refused(numbers):
    with pytest.raises(ParameterError):
        DebitCredit(*numbers)


# --- the transaction --------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["transaction", "flushing", "probing"])
def test_every_variant_runs_and_keeps_the_balance(cluster, script, protocol):
    SMALL.load(cluster)
    # written at once, unlike pg_stat_checkpointer
    checkpoints = lambda: cluster.log().count("checkpoint starting")
    before = checkpoints()
    drive(cluster, SMALL, SQL.script(script), 20, protocol)
    assert checkpoints() - before >= (0 if script == "transaction" else 20)
    found = SMALL.check(cluster)
    assert found.transactions == 20 and found.consistent
    assert found.account == found.teller == found.branch == found.amount == 200.0


@pytest.mark.parametrize("relation", ["account", "teller", "branch", "history"])
def test_check_notices_a_lost_update(cluster, connection, relation):
    SMALL.load(cluster)
    drive(cluster, SMALL, FIGURE_2_3, 5)
    assert SMALL.check(connection).consistent
    attribute = "amount" if relation == "history" else "balance"
    connection.execute(
        f"UPDATE {relation} SET {attribute} = {attribute} - 10 WHERE ctid ="
        f" (SELECT ctid FROM {relation} WHERE {attribute} > 0 LIMIT 1)"
    )
    assert not SMALL.check(connection).consistent


def probe_of(relation, page):
    """The first of the statements that read a random page of a relation."""
    variable = f":{relation}_page_1"
    [line] = [line for line in SQL.script("probing").splitlines() if variable in line]
    return line.replace(variable, str(page))


@pytest.mark.parametrize(
    "relation, branches, node",
    [
        ("account", 200, "Tid Scan"),
        ("branch", 20, "Seq Scan"),  # a single page
    ],
)
def test_a_probe_reads_exactly_its_page(cluster, relation, branches, node):
    relations = DebitCredit(branches, 2_000, 2_000)
    relations.load(cluster)
    pages = relations.variables(cluster)[f"{relation}_pages"]
    resident = (
        f"SELECT relblocknumber FROM {cluster.extension('pg_buffercache')}.pg_buffercache WHERE"
        f" relfilenode = pg_relation_filenode('{relation}') AND relforknumber = 0"
    )
    for page in {0, pages - 1}:
        cluster.restart()
        with cluster.connect() as fresh:
            probe = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {probe_of(relation, page)}"
            plan = fresh.execute(probe).fetchone()[0][0]["Plan"]
            read = (plan["Node Type"], plan["Shared Read Blocks"], plan["Shared Hit Blocks"])
            assert read == (node, 1, 0)
            assert fresh.execute(resident).fetchall() == [(page,)]


def test_run_once_is_the_same_transaction(cluster, connection):
    SMALL.load(cluster)
    draws = random.Random(3)
    for script in [FIGURE_2_3] * 5 + [SQL.script("probing")]:
        SMALL.run_once(connection, draws, script)
    found = SMALL.check(cluster)
    assert found.consistent and found.transactions == 6
    query = "SELECT count(DISTINCT (bid, tid, aid)), min(string), max(string) FROM history"
    assert connection.execute(query).fetchone() == (6, "x" * 30, "x" * 30)


def test_a_borrowed_server_holds_the_relations_in_our_schema(borrowed_url):
    with open_server(borrowed_url) as server:
        SMALL.load(server)
        schemas = (
            "SELECT array_agg(DISTINCT relnamespace::regnamespace::text) FROM pg_class"
            " WHERE relname ~ '^(branch|teller|account|history)(_index)?$'"
        )
        assert server.fetch(schemas) == ([server.schema],) and server.schema != "public"
        drive(server, SMALL, SQL.script("probing"), 10)
        assert SMALL.check(server).consistent
        assert SMALL.facts(server)["pages"].gt(0).all()
