"""Spark from outside: what it is told, what it answers, what is left of it.

Where pyspark or Java is missing the tests with executors are skipped with that reason.
"""

import os
import signal
import socket
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError

import numpy as np
import psutil
import pytest
from executors import with_executors

from pgrerun.errors import CannotMeasure, ParameterError, ServerError
from pgrerun.lab.quel import Translator, read
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.relations.wisconsin import cycle_blocks, unique1
from pgrerun.lab.server import sweep
from pgrerun.lab.server.processes import await_end
from pgrerun.lab.spark import Spark, require, require_pyspark, spark_sql, wisconsin_sql

# ---- without Spark


STORED = "retrieve into tmp (a.x) where a.y >= 1 and a.y <= 2"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (Translator().sql(read(STORED)[0]), "CREATE TABLE tmp USING parquet AS "),
        ('SELECT a."order" FROM a', "SELECT a.`order` FROM a"),
    ],
)
def test_spark_is_told_in_its_own_sql(given, taken):
    assert spark_sql(given).startswith(taken)


@pytest.mark.parametrize("n, order", [(1000, 1), (20_000, 2), (70_000, 1)])
def test_each_block_of_the_random_order_is_computed_alone(n, order):
    generator, prime, blocks = cycle_blocks(n, order)
    whole = unique1(n, 0, n, order)
    for before, enters, steps in reversed(blocks):
        seeds, seed = [], enters
        for _ in range(steps):
            seeds.append(seed)
            seed = seed * generator % prime
        kept = [seed - 1 for seed in seeds if seed <= n]
        assert np.array_equal(kept, whole[before : before + len(kept)])


def test_other_relations_than_those_of_1993_are_refused():
    with pytest.raises(ParameterError, match="1993"):
        wisconsin_sql(Wisconsin("a", 1000, attributes="1990"), 2)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_an_old_java_is_named(tmp_path, monkeypatch, version):
    program = tmp_path / "bin" / "java"
    for file in (program, tmp_path / "pyspark" / "__init__.py"):
        file.parent.mkdir()
        file.write_text("")
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CannotMeasure, match=f"the one here is {version}") as found:
        require(2)
    assert found.value.capability == "Java"


def test_a_pyspark_that_was_not_installed_is_one_and_without_any_the_reason_is_told(monkeypatch):
    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.util.find_spec", lambda name: ModuleSpec(name, None))
    monkeypatch.setattr("importlib.metadata.version", unknown)
    assert require_pyspark() == "yes"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CannotMeasure, match="requirements-cluster.txt"):
        require(2)


def test_a_master_that_nobody_answers_for_is_an_error_at_once(base):
    with socket.socket() as taken:  # bound and never listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerError, match=f"No master of a Spark cluster answers at {master}"):
            Spark(2, master, "file:///nowhere")
    assert list(base.iterdir()) == []


# ---- with executors in processes of their own


@pytest.fixture(scope="module")
def spark():
    with Spark(2) as session:
        yield session


def below(pid: int, word: str = "") -> list[psutil.Process]:
    """The Java processes below one, whose command has the word."""
    found = psutil.Process(pid).children(recursive=True)
    return [one for one in found if one.name() == "java" and word in " ".join(one.cmdline())]


EXECUTOR = "CoarseGrainedExecutorBackend"


@with_executors
@pytest.mark.parametrize("n, order", [(1000, 1), (1000, 2), (20_000, 1), (70_000, 2)])
def test_relations_made_inside_are_those_that_duckdb_is_sent(spark, n, order):
    relation = Wisconsin("made", n, order=order)
    spark.load(relation)
    with Duck() as duck:
        duck.load(relation)
        assert spark.execute(spark_sql(relation.checksum_sql)) == duck.execute(
            relation.checksum_sql
        )


@with_executors
def test_relations_go_where_they_are_told_and_leave_the_place_as_it_was(base):
    place = base / "given"
    place.mkdir()
    with Spark(1, storage=f"file://{place}") as session:
        session.load(Wisconsin("mine", 1000))
        assert list(place.rglob("*.parquet")) and session.bytes("mine") > 0
        assert session.execute("SELECT count(*) FROM mine") == [(1000,)]
    assert list(place.iterdir()) == []


def worked(session: Spark) -> list[float]:
    """Seconds of processor that a query of two tasks takes of each executor, from the least."""
    found = below(session.pid, EXECUTOR)
    before = [sum(one.cpu_times()[:2]) for one in found]
    session.execute("SELECT sum(hash(id)) FROM range(0, 200000000, 1, 2)")
    return sorted(sum(one.cpu_times()[:2]) - spent for one, spent in zip(found, before))


@with_executors
def test_executors_are_kept_from_work_and_let_go_again(spark):
    for working in (1, 2, 1):
        spark.use(working)
        worked(spark)  # and whatever is new to an executor has been compiled there
        idle, busy = worked(spark)
        assert (idle < busy / 4) == (working == 1)
    spark.use(2)


@with_executors
def test_what_executors_move_is_counted(spark):
    spark.load(Wisconsin("moving", 1000))
    before = spark.moved()
    spark.execute("SELECT onepercent, sum(unique1) FROM moving GROUP BY onepercent")
    assert spark.moved() > before


@with_executors
def test_executors_are_processes_that_listen_on_loopback_alone(spark):
    assert spark.version and len(below(os.getpid(), EXECUTOR)) >= 2
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for one in below(os.getpid())
        for connection in one.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening and listening <= {"127.0.0.1", "::1"}


@with_executors
@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("SELECT nothing FROM nowhere", "nowhere"),
        # a table of Parquet takes no changes
        ("UPDATE kept SET two = 0", "not support"),
        ("DELETE FROM kept WHERE two = 0", "not support"),
    ],
)
def test_what_spark_cannot_do_is_told(spark, statement, word):
    spark.load(Wisconsin("kept", 1000))
    with pytest.raises(ServerError, match=word):
        spark.execute(statement)


OWNER = """
import sys
from pgrerun.lab.spark import Spark
session = Spark(2)
print(session.version, flush=True)
sys.stdin.readline()
"""


@with_executors
def test_nothing_is_left_of_an_owner_that_is_killed(base):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout.readline().strip()
    found = below(owner.pid)
    assert len(below(owner.pid, EXECUTOR)) == 2
    owner.kill()
    owner.communicate()
    assert await_end(found, patience=60) == []
    sweep()  # as the next run does
    assert list(base.iterdir()) == []


@with_executors
def test_a_driver_that_is_killed_is_told_and_takes_its_executors_along(base):
    with Spark(1) as session:
        assert session.version
        found = below(session.pid)
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(ServerError, match="its driver ended"):
            session.execute("SELECT 1")
    assert found and await_end(found, patience=60) == []
    assert list(base.iterdir()) == []
