"""The chapter on a cluster: what it makes of times, and what it refuses.

On executors of its own it runs as every chapter does: for the book, and under nbval. Here are all
of its queries on small relations, and the chapter on a cluster that exists. Where pyspark or Java
is missing these are skipped with that reason.
"""

import importlib.util
import os
import re
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from executors import with_executors

from pgrerun import notebook, parameters
from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin_cluster import experiments
from pgrerun.chapters.wisconsin_cluster.experiments import (
    DUCKDB,
    POSTGRESQL,
    QUESTIONS,
    READING,
    SPARK,
    sizes,
)
from pgrerun.errors import CannotMeasure, ParameterError, RerunError
from pgrerun.lab.relations.checksum import Answers
from pgrerun.lab.testbed import Testbed
from pgrerun.notebook import Notebook
from pgrerun.page import declared
from pgrerun.parameters import chapter_parameters
from pgrerun.record import evidence, rows, verdicts
from pgrerun.record.database import Database

CHAPTER = "wisconsin_cluster"
# engine, executors, tuples: seconds. Two executors are 1.6 times as fast as one, and on twice the
# tuples as fast as one.
TIMES = {
    (SPARK, 1, 1000): 1.6,
    (SPARK, 2, 1000): 1.0,
    (SPARK, 2, 2000): 1.6,
    (DUCKDB, 1, 1000): 0.1,
    (DUCKDB, 1, 2000): 0.2,
    (POSTGRESQL, 1, 1000): 1.0,
    (POSTGRESQL, 1, 2000): 2.0,
}


def bed(**given) -> Testbed:
    return Testbed(chapter_parameters(CHAPTER, given), programs=None)


@pytest.fixture
def open_one(tmp_path, monkeypatch):
    """Opens the chapter with parameters, its record in a folder of its own."""
    monkeypatch.delenv(notebook.RECORD, raising=False)
    opened = []

    def make(**given) -> Notebook:
        given = chapter_parameters(CHAPTER, given)
        opened.append(Notebook(CHAPTER, given, records=tmp_path / "runs"))
        return opened[-1]

    yield make
    for chapter in opened:
        chapter.leave()
        chapter.record.release()


@pytest.fixture
def database():
    found = [
        {"engine": engine, "executors": executors, "tuples": tuples, "query": key, "block": block}
        | {"smallest": tuples == 1000, "largest": tuples == 2000}
        | {"seconds": seconds * (1 + block / 1000), "moved": 1000.0}
        for block in range(5)
        for (engine, executors, tuples), seconds in TIMES.items()
        for key in QUESTIONS
    ]
    units = experiments.questions.units
    with Database(CHAPTER) as one:
        one.add("run", CHAPTER, "questions", rows.frame(found, units), units)
        yield one


def test_the_claims_number_and_the_charts_are_as_put_in(database):
    rule = evidence.rules(parameters.folder(CHAPTER))["wcluster-001"]
    found = evidence.judge(verdicts.Judge(CHAPTER, None), rule, database, {}, {})
    # taken at the largest size
    assert found.evidence.estimate == pytest.approx(8.0) and str(found.verdict) == "holds"
    drawn = declared.charts_of(parameters.folder(CHAPTER))
    found = drawn["cluster-metrics"].frame(database).groupby("panel")["value"].median()
    assert found.to_dict() == pytest.approx({"speed-up": 1.6, "scale-up": 1.0})
    least = drawn["cluster-growth"].frame(database).groupby("series")["value"].min()
    assert set(least.index) == {SPARK, DUCKDB, POSTGRESQL}
    assert least[SPARK] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"spark": "sprk://host:7077"}, "spark must be empty, spark://host:7077"),
        ({"spark": "local[2]"}, "spark must be empty"),
        ({"storage": "s3a://key:secret@bucket"}, "without a password"),
    ],
)
def test_an_address_that_is_none_starts_nothing(given, words):
    with pytest.raises(ParameterError) as error:
        chapter_parameters(CHAPTER, given)
    assert words in str(error.value) and "secret" not in str(error.value)
    assert "Nothing was started" in str(error.value)


def test_the_largest_relation_is_at_least_that_of_all_executors():
    assert sizes(bed(tuples=5000, largest=2000)) == [5000, 10_000]
    with pytest.raises(CannotMeasure, match="`storage` names a folder"):  # that they can write
        next(experiments.questions(bed(spark="spark://127.0.0.1:7077")))


def test_what_reads_is_every_query_but_those_that_change_relations():
    asked = {queries.BY_KEY[key].query for key in READING}
    left = {key for key in queries.KEYS if queries.BY_KEY[key].query not in asked}
    assert left == {f"q{number}" for number in range(26, 33)}


@pytest.mark.parametrize(
    "number, keys",
    [
        (3, QUESTIONS),
        (6, ("q1", "q2", "q9", "q10", "q18", "q22")),  # selections, joins, a projection, sums
        (len(READING), READING),
    ],
)
def test_where_time_is_short_some_queries_of_each_kind_are_answered(number, keys):
    assert experiments.answered(number) == keys


# ---- with executors in processes of their own


@with_executors
def test_every_query_that_reads_is_answered_alike_and_a_difference_is_told(open_one):
    bed = open_one(tuples=1000, largest=2000, answered=len(READING)).bed
    with ExitStack() as opened:
        seats = list(experiments.all_seats(bed, opened))
        found = list(experiments.answers(bed, seats))
        duck, spark = (
            next(one for one in seats if one.n == 1000 and one.name == name)
            for name in (DUCKDB, SPARK)
        )
        duck.execute("UPDATE tenk1 SET unique3 = unique3 + 1 WHERE unique1 = 7")
        known = Answers()
        known.compare("22", duck.name, duck.answered("q22", 1990))
        with pytest.raises(RerunError, match=f"differently: by {duck.name}.*by {spark.name}"):
            known.compare("22", spark.name, spark.answered("q22", 1990))
    tuples = {row["query"]: row["answered"] for row in found if row["tuples"] == 1000}
    specified = {"q1": 10, "q2": 100, "q7": 1, "q8": 10, "q9": 100, "q10": 100, "q11": 100}
    assert set(tuples) == set(READING) and tuples.items() >= specified.items()
    assert (tuples["q20"], tuples["q22"]) == (1, 100)


@contextmanager
def process(folder: Path, *arguments: str):
    """A part of a standalone cluster on loopback, and the address that it says it is at."""
    package = Path(importlib.util.find_spec("pyspark").origin).parent
    folder.mkdir()
    log = folder / "log"
    with log.open("w") as out:
        started = subprocess.Popen(
            [package / "bin" / "spark-class", *arguments],
            stdout=out,
            stderr=out,
            cwd=folder,
            env=os.environ | {"SPARK_HOME": str(package), "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
    try:
        while not (found := re.search(r"at (spark://\S+:\d+)|(Successfully reg)", log.read_text())):
            assert started.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
        yield found.group(1)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


@pytest.fixture
def standalone(tmp_path):
    """The address of a cluster of Spark's own kind with two cores, and of its worker's process."""
    deploy, loopback = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--port", "0")
    free = (*loopback, "--webui-port", "0")
    with process(tmp_path / "master", f"{deploy}.master.Master", *free) as master:
        room = ("--cores", "2", "--memory", "2g", "--work-dir", str(tmp_path / "work"))
        with process(tmp_path / "worker", f"{deploy}.worker.Worker", *free, *room, master):
            yield master


@with_executors
@pytest.mark.slow
def test_the_chapter_runs_on_a_cluster_that_exists(open_one, standalone, tmp_path):
    place = tmp_path / "storage"
    place.mkdir()
    given = {"tuples": 1000, "largest": 2000, "pairs": 7}
    chapter = open_one(spark=standalone, storage=f"file://{place}", **given)
    found = chapter.run("questions").frame
    assert list(place.iterdir()) == []
    assert found["system"].dropna().str.endswith("of another cluster").all()
    assert found["block"].nunique() == chapter.bed.fewer_pairs
