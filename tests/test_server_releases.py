"""What the table of releases says is what the releases installed here say themselves."""

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import counters, pgbench, plans, processes, server_load, sizes, wal
from pgrerun.lab.relations import Pgbench
from pgrerun.lab.server import Cluster, bundled, installed, releases

RELEASES = {programs.major: programs for programs in [*installed(), bundled()]}


@pytest.fixture(scope="module", params=[15, 18])
def server(request):
    """A server of the oldest and of the newest release that is tested."""
    if request.param not in RELEASES:
        pytest.skip(f"PostgreSQL {request.param} isn't installed here")
    with Cluster(RELEASES[request.param], {"shared_buffers": "16MB"}) as cluster:
        yield cluster


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


def test_settings_are_known_from_the_release_on_that_the_table_names(server, connection):
    query = "SELECT name FROM pg_settings WHERE name = ANY(%s)"
    there = {name for (name,) in connection.execute(query, [list(releases.SETTINGS_SINCE)])}
    expected = {name for name in releases.SETTINGS_SINCE if releases.knows(server.version, name)}
    assert there == expected


def test_views_and_functions_are_there_from_the_release_on_that_the_table_names(server, connection):
    names = [name for name in releases.SINCE if " " not in name]
    query = """
        SELECT name FROM unnest(%s::text[]) AS name
        WHERE EXISTS (SELECT 1 FROM pg_proc WHERE proname = name)
           OR to_regclass(name) IS NOT NULL OR to_regtype(name) IS NOT NULL
           OR EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name)"""
    there = {name for (name,) in connection.execute(query, [names])}
    assert there == {name for name in names if releases.has(server.version, name)}


def test_a_release_without_it_is_told_with_the_first_that_has_it():
    releases.require(160000, "pg_stat_io")
    with pytest.raises(CannotMeasure, match="PostgreSQL 16 or later .*this is 15") as told:
        releases.require(150014, "pg_stat_io")
    assert told.value.capability == "PostgreSQL 16"
    releases.require_settings(90300, {"work_mem": "1MB", "no such setting": 1})
    with pytest.raises(CannotMeasure, match="WAL_compression, which PostgreSQL has from 9.5 on"):
        releases.require_settings(90324, ["WAL_compression"])


@pytest.mark.parametrize(
    ("numbers", "number", "name"),
    [
        ((9, 3), 90300, "9.3"),
        ((9, 6, 24), 90624, "9.6"),
        ((18, 6), 180006, "18"),
        ((19,), 190000, "19"),
    ],
)
def test_versions_are_numbered_as_the_server_does(numbers, number, name):
    assert releases.number(numbers) == number and releases.named(number) == name


def test_programs_have_the_number_of_their_server(server):
    assert RELEASES[server.version // 10000].number == server.version


def test_wal_and_sizes(connection):
    rows = "SELECT g, repeat('x', 500) FROM generate_series(1, 150) g"
    connection.execute(f"CREATE TABLE sized AS {rows}")
    with wal.written(connection) as found:
        connection.execute("DELETE FROM sized")
    assert found.bytes > 150 * 50 and sizes.pages(connection, "sized") == 10
    connection.execute("DROP TABLE sized")


def test_counts_are_complete_when_the_block_ends(server):
    with server.connect() as connection, counters.Counters(server) as counting:
        connection.execute("CREATE TABLE counted (id int PRIMARY KEY, v int)")
        connection.execute("INSERT INTO counted SELECT g, 0 FROM generate_series(1, 100) g")
        with counting.measured(connection) as delta:
            connection.execute("UPDATE counted SET v = v + 1")
            connection.execute("CHECKPOINT")
        [row] = delta.relations.query("relation == 'counted'").to_dict("records")
        assert row["updated"] == 100 and delta.checkpoints == 1 and delta.wal_bytes > 0
        assert (delta.io is None) == (server.version < 160000)
        found = counters.counts(connection, "counted")
        assert (found["inserted"], found["updated"]) == (100, 100)
        assert (found["newpage_updated"] is None) == (server.version < 160000)
        connection.execute("DROP TABLE counted")


def test_loads_plans_and_processes(server, connection):
    bank = Pgbench(accounts_per_branch=1000)
    bank.load(connection)
    script = (
        "\\set aid random(1, :accounts)\n"
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
    )
    server_load.run(connection, script, 50, variables=bank.variables, seed=1)
    done = pgbench.run(server, script, transactions=50, variables=bank.variables)
    assert done.transactions == 50
    query = "SELECT sum(abalance) FROM pgbench_accounts"
    assert connection.execute(query).fetchone() == (100,)
    plan = plans.explain(connection, query, execute=True)
    assert plan.scan_of("pgbench_accounts").rows_actual == 1000 and plan.page_accesses > 10
    assert processes.usage(server).cpu_seconds > 0
    connection.execute(f"DROP TABLE {', '.join(bank.relations.values())}")


def test_checkpoints_are_counted_at_once(connection):
    connection.execute("CREATE TABLE dirty AS SELECT 1")
    before = counters.checkpoints(connection)
    connection.execute("CHECKPOINT")
    assert counters.checkpoints(connection) == before + 1
    connection.execute("DROP TABLE dirty")
