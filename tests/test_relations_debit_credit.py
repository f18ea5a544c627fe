"""TP1: the relations, the transaction in all its variants under pgbench, and its invariant."""

import random
import re
import time

import pytest

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
    given = [
        option
        for item in relations.variables(cluster).items()
        for option in ("-D", "{}={}".format(*item))
    ]
    path = cluster.scratch / "script.sql"
    path.write_text(script)
    done = cluster.tool(
        "pgbench",
        "-n",
        "-t",
        transactions,
        "--random-seed=7",
        "-M",
        protocol,
        *given,
        "-f",
        f"{path}@1",
    )
    path.unlink()
    assert f"actually processed: {transactions}/{transactions}" in done.stdout
    assert "ERROR" not in done.stderr
    leave(cluster, "pgbench")


def leave(cluster, application):
    """Wait until its backends are gone: they hand in their statistics on their way out."""
    present = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    with cluster.connect() as connection:
        end = time.monotonic() + 60
        while connection.execute(present, [application]).fetchone() != (0,):
            assert time.monotonic() < end, f"{application}'s backends are still there"
            time.sleep(0.01)


# --- relations --------------------------------------------------------------------------------


def test_figure_2_2(cluster, connection):
    relations = DebitCredit.report()
    relations.load(cluster)
    attributes = connection.execute(
        "SELECT attrelid::regclass::text, attname || ' ' || format_type(atttypid, NULL) FROM"
        " pg_attribute WHERE attrelid IN ('branch'::regclass, 'teller'::regclass,"
        " 'account'::regclass, 'history'::regclass) AND attnum > 0 ORDER BY attrelid, attnum"
    ).fetchall()
    found = {}
    for relation, attribute in attributes:
        found.setdefault(relation, []).append(attribute)
    balance = ["balance double precision", "string text"]
    assert found == {
        "branch": ["bid integer", *balance],
        "teller": ["tid integer", *balance],
        "account": ["aid integer", *balance],
        "history": [
            "bid integer",
            "tid integer",
            "aid integer",
            "amount double precision",
            "string text",
        ],
    }
    indexes = connection.execute(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname"
    ).fetchall()
    assert [re.sub(r"public\.", "", definition) for (definition,) in indexes] == [
        f"CREATE INDEX {relation}_index ON {relation} USING btree ({key})"
        for relation, key in (("account", "aid"), ("branch", "bid"), ("teller", "tid"))
    ]
    for relation, key, tuples in (
        ("branch", "bid", 1_000),
        ("teller", "tid", 10_000),
        ("account", "aid", 10_000),
    ):
        query = (
            f"SELECT count(DISTINCT {key}), min({key}), max({key}), sum(balance), max(4 + 8 +"
            " length(string)),"
        )
        query += f" min(4 + 8 + length(string)) FROM {relation}"
        assert connection.execute(query).fetchone() == (tuples, 1, tuples, 0, 100, 100)


def test_report_of_10_000_tuples_takes_173_pages_not_218(cluster):
    relations = DebitCredit.report()
    relations.load(cluster)
    facts = relations.facts(cluster).set_index("relation")
    assert facts["pages"].to_dict() == {
        "branch": 18,
        "branch_index": 5,
        "teller": 173,
        "teller_index": 30,
        "account": 173,
        "account_index": 30,
        "history": 0,
    }
    assert facts.loc["account", "tuples"] == 10_000
    assert facts.loc["account", "tuples_per_page"] == pytest.approx(10_000 / 173)
    # "each B-tree has two levels" (3.2.2)
    indexes = facts[facts["kind"] == "index"]
    assert indexes["levels"].tolist() == [2, 2, 2]
    assert set(indexes["levels_from"]) == {"metapage"}
    assert indexes["of"].tolist() == ["branch", "teller", "account"]


def test_levels_are_the_same_from_metapage_and_size(cluster, monkeypatch):
    relations = DebitCredit.tpcb(2)
    relations.load(cluster)
    by_metapage = relations.facts(cluster)

    def refuse(name):
        raise CannotMeasure(f"contrib:{name}", "not here")

    with cluster.connect() as connection:
        connection.execute("DROP EXTENSION pageinspect")
    monkeypatch.setattr(cluster, "extension", refuse)
    by_size = relations.facts(cluster)
    assert by_size["levels_from"].dropna().unique().tolist() == ["size"]
    assert (
        by_size["levels"].dropna().tolist() == by_metapage["levels"].dropna().tolist() == [1, 1, 3]
    )


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
    pages = (
        "SELECT relname FROM pg_class WHERE relname IN ('branch', 'teller', 'account') AND"
        " relallvisible < relpages"
    )
    assert connection.execute(pages).fetchall() == []


def test_fillfactor_balance_index_and_logging(cluster, connection):
    SMALL.load(cluster)
    packed = SMALL.facts(cluster).set_index("relation")["pages"]
    SMALL.load(cluster, fillfactor=50, index_balance=True, logged=False)
    loose = SMALL.facts(cluster).set_index("relation")["pages"]
    assert loose["account"] == pytest.approx(2 * packed["account"], abs=2)
    assert {"branch_balance_index", "teller_balance_index", "account_balance_index"} <= set(
        loose.index
    )
    kinds = (
        "SELECT DISTINCT relpersistence::text FROM pg_class WHERE relname ~"
        " '^(branch|teller|account|history)$'"
    )
    assert connection.execute(kinds).fetchall() == [("u",)]


@pytest.mark.parametrize("index_balance", [False, True])
def test_balance_index_prevents_heap_only_tuples(cluster, connection, index_balance):
    SMALL.load(cluster, fillfactor=50, index_balance=index_balance)
    drive(cluster, SMALL, FIGURE_2_3, 50)
    query = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'account'"
    assert connection.execute(query).fetchone() == (50, 0 if index_balance else 50)


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


def test_impossible_fillfactor_is_refused(cluster):
    with pytest.raises(ParameterError, match="not 5"):
        SMALL.load(cluster, fillfactor=5)


def test_scales():
    assert DebitCredit.report(3) == DebitCredit(3_000, 30_000, 30_000)
    assert DebitCredit.tpcb(3) == DebitCredit(3, 30, 300_000)


# --- the transaction --------------------------------------------------------------------------


def test_script_is_figure_2_3():
    drawn, work = FIGURE_2_3.split("BEGIN;\n")
    assert drawn.splitlines() == [
        r"\set aid random(1, :accounts)",
        r"\set tid random(1, :tellers)",
        r"\set bid random(1, :branches)",
    ]
    # 300 transactions are 2100 commands (section 2.2): begin and these six
    assert work.splitlines() == [
        "SELECT account.* FROM account WHERE aid = :aid;",
        "UPDATE account SET balance = balance + 10.0 WHERE aid = :aid;",
        "UPDATE teller SET balance = balance + 10.0 WHERE tid = :tid;",
        "UPDATE branch SET balance = balance + 10.0 WHERE bid = :bid;",
        (
            "INSERT INTO history (bid, tid, aid, amount, string)"
            " VALUES (:bid, :tid, :aid, 10.0, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx');"
        ),
        "END;",
    ]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["transaction", "flushing", "probing"])
def test_every_variant_runs_and_keeps_the_balance(cluster, script, protocol):
    SMALL.load(cluster)
    drive(cluster, SMALL, SQL.script(script), 20, protocol)
    found = SMALL.check(cluster)
    assert found.transactions == 20
    assert found.account == found.teller == found.branch == found.amount == 200.0
    assert found.consistent


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


def test_independent_draws_ignore_who_belongs_where(cluster, connection):
    SMALL.load(cluster)
    drive(cluster, SMALL, FIGURE_2_3, 1_000)
    own_teller, own_account = shares_at_home(connection)
    assert 0.01 < own_teller < 0.09  # of 20 branches: 0.05, give or take 6 standard deviations
    assert 0.01 < own_account < 0.09


def shares_at_home(connection):
    """Of history's tuples, the share whose teller, and whose account, belongs to the branch."""
    return connection.execute(
        "SELECT avg(((tid - 1) / 10 + 1 = bid)::int)::float, avg(((aid - 1) / 100 + 1 ="
        " bid)::int)::float FROM history"
    ).fetchone()


def probe_of(relation, page):
    """The first of the statements that read a random page of a relation."""
    variable = f":{relation}_page_1"
    [line] = [line for line in SQL.script("probing").splitlines() if variable in line]
    return line.replace(variable, str(page))


@pytest.mark.parametrize(
    "relation, branches, node",
    [
        ("account", 200, "Tid Scan"),
        ("teller", 200, "Tid Scan"),
        ("branch", 200, "Tid Scan"),
        ("branch", 20, "Seq Scan"),  # a single page
    ],
)
def test_a_probe_reads_exactly_its_page(cluster, relation, branches, node):
    relations = DebitCredit(branches, 2_000, 2_000)
    relations.load(cluster)
    pages = relations.variables(cluster)[f"{relation}_pages"]
    where = cluster.extension("pg_buffercache")
    for page in {0, pages - 1}:
        cluster.restart()
        with cluster.connect() as fresh:
            probe = probe_of(relation, page)
            plan = fresh.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {probe}").fetchone()[0][
                0
            ]["Plan"]
            assert plan["Node Type"] == node
            assert (plan["Shared Read Blocks"], plan["Shared Hit Blocks"]) == (1, 0)
            resident = fresh.execute(
                f"SELECT relblocknumber FROM {where}.pg_buffercache"
                f" WHERE relfilenode = pg_relation_filenode('{relation}') AND relforknumber = 0"
            ).fetchall()
            assert resident == [(page,)]


def test_probes_are_drawn_from_all_pages_before_each_replace():
    script = SQL.script("probing")
    assert (
        len(
            re.findall(
                r"^\\set \w+_page_\d random\(0, :(?:account|teller|branch)_pages - 1\)$",
                script,
                re.M,
            )
        )
        == 9
    )
    work = [line.split()[:4] for line in script.split("BEGIN;\n")[1].splitlines()]
    verbs = [
        f"{words[0]} {words[1] if words[0] == 'UPDATE' else words[3]}"
        for words in work
        if len(words) > 3
    ]
    assert verbs[:-1] == ["SELECT account"] + [
        step
        for relation in ("account", "teller", "branch")
        for step in [f"SELECT {relation}"] * 3 + [f"UPDATE {relation}"]
    ]


def test_checkpoint_follows_every_transaction(cluster):
    SMALL.load(cluster)
    before = cluster.log().count(
        "checkpoint starting"
    )  # written at once, unlike pg_stat_checkpointer
    drive(cluster, SMALL, SQL.script("flushing"), 10)
    assert cluster.log().count("checkpoint starting") - before == 10


def test_run_once_is_the_same_transaction(cluster, connection):
    SMALL.load(cluster)
    draws = random.Random(3)
    for _ in range(5):
        SMALL.run_once(connection, draws, FIGURE_2_3)
    found = SMALL.check(cluster)
    assert found.consistent and found.transactions == 5
    SMALL.run_once(connection, draws, SQL.script("probing"))
    assert SMALL.check(cluster).transactions == 6
    assert connection.execute("SELECT DISTINCT string FROM history").fetchall() == [("x" * 30,)]
    assert connection.execute("SELECT count(DISTINCT (bid, tid, aid)) FROM history").fetchone() == (
        6,
    )


def test_a_borrowed_server_holds_the_relations_in_our_schema(borrowed_url):
    with open_server(borrowed_url) as server:
        SMALL.load(server)
        with server.connect() as connection:
            schemas = connection.execute(
                "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class"
                " WHERE relname ~ '^(branch|teller|account|history)(_index)?$'"
            ).fetchall()
            assert schemas == [(server.schema,)] and server.schema != "public"
        drive(server, SMALL, SQL.script("probing"), 10)
        assert SMALL.check(server).consistent
        assert SMALL.facts(server)["pages"].gt(0).all()
