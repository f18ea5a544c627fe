"""pgbench: its report is read completely, and a broken run gives no number."""

import pytest
from servers import tell

from pgrerun.errors import ParameterError, ServerError
from pgrerun.lab.instruments import pgbench

SCRIPT = "\\set id random(1, 1000)\nINSERT INTO drawn VALUES (:id, :mark);\n"


@pytest.fixture(scope="module")
def server(cluster):
    cluster.tool("pgbench", "-i", "-q")
    tell(cluster, "CREATE TABLE drawn (id int, mark int)")
    yield cluster
    kinds = ("accounts", "branches", "tellers", "history")
    tell(cluster, f"DROP TABLE drawn, {', '.join(f'pgbench_{kind}' for kind in kinds)}")


def drawn(server):
    with server.connect() as conn:
        return conn.execute("DELETE FROM drawn RETURNING id, mark").fetchall()


def test_transactions_variables_and_seed(server):
    runs = []
    given = {"variables": {"mark": 7}, "protocol": "prepared"}
    for seed in (11, 11, 12):
        result = pgbench.run(server, SCRIPT, transactions=40, seed=seed, **given)
        assert (result.transactions, result.failed) == (40, 0) and result.tps > 0
        assert result.log is None
        runs.append(drawn(server))
    assert runs[0] == runs[1] != runs[2]
    assert {mark for _, mark in runs[0]} == {7}


def test_a_log_has_every_transaction_of_every_thread(server):
    result = pgbench.run(server, "SELECT 1;", clients=4, jobs=2, transactions=25, log=True)
    assert len(result.log) == result.transactions == 100
    assert set(result.log["client"]) == {0, 1, 2, 3} and set(result.log["outcome"]) == {"done"}
    assert result.log["time_s"].is_monotonic_increasing
    assert result.log["latency_ms"].min() <= result.latency_ms * 1.5
    assert list(server.scratch.glob("pgbench-*")) == []


def test_builtins(server):
    assert pgbench.run(server, builtin="select-only", clients=2, transactions=10).transactions == 20


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "script or the name"),
        ({"script": "SELECT 1;", "builtin": "select-only"}, "script or the name"),
        ({"script": "SELECT 1;", "transactions": None}, "seconds or transactions"),
        ({"script": "SELECT 1;", "transactions": 0}, "at least 1"),
        ({"script": "SELECT 1;", "transactions": 1.5}, "whole"),
        ({"script": "SELECT 1;", "clients": 0}, "at least one client"),
    ],
)
def test_arguments_that_make_no_sense(server, arguments, complaint):
    with pytest.raises(ParameterError, match=complaint):
        pgbench.run(server, **({"transactions": 1} | arguments))


@pytest.mark.parametrize(
    ("script", "clients", "complaint"),
    [
        ("SELECT 1 / (:client_id - 1);", 2, "division by zero"),
        ("\\nonsense", 1, "invalid command"),
        ("SELECT 1;", 50, "fewer clients"),
    ],
)
def test_a_client_that_aborts_gives_no_number(server, script, clients, complaint):
    with pytest.raises(ServerError, match=complaint):
        pgbench.run(server, script, clients=clients, transactions=5)
    assert list(server.scratch.glob("pgbench-*")) == []


def test_serialization_failures_are_counted(server):
    # which of two concurrent transactions fails is the schedule's; this client always does
    script = (
        "\\if :client_id = 0\n"
        "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'serialization_failure'; END $$;\n"
        "\\else\nSELECT 1;\n\\endif\n"
    )
    result = pgbench.run(server, script, clients=4, jobs=2, transactions=50, log=True)
    assert (result.failed, result.transactions) == (50, 150)
    assert (result.log["outcome"] == "failed").sum() == result.failed
