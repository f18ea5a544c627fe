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
from judging import judged, opened, repeated

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
from pgrerun.page import declared
from pgrerun.parameters import chapter_parameters, folder
from pgrerun.record import rows
from pgrerun.record.database import Database

CHAPTER = "wisconsin_cluster"


def bed(**given) -> Testbed:
    return Testbed(chapter_parameters(CHAPTER, given), programs=None)


# Two executors are 1.6 times as fast as one, and on twice the tuples as fast as one.
TIMES = repeated(
    {"engine": engine, "executors": executors, "tuples": tuples, "query": key}
    | {"smallest": tuples == 1000, "largest": tuples == 2000, "seconds": seconds, "moved": 1000.0}
    for engine, executors, tuples, seconds in (
        (SPARK, 1, 1000, 1.6),
        (SPARK, 2, 1000, 1.0),
        (SPARK, 2, 2000, 1.6),
        (DUCKDB, 1, 1000, 0.1),
        (DUCKDB, 1, 2000, 0.2),
        (POSTGRESQL, 1, 1000, 1.0),
        (POSTGRESQL, 1, 2000, 2.0),
    )
    for key in QUESTIONS
)


def test_the_claim_is_judged_by_the_times_at_the_largest_size():
    found = judged("wcluster-001", CHAPTER, questions=TIMES)
    assert found.evidence.estimate == pytest.approx(8.0) and str(found.verdict) == "holds"


def test_speed_up_and_scale_up_are_drawn_as_they_were_put_in():
    units = experiments.questions.units
    with Database(CHAPTER) as database:
        database.add("run", CHAPTER, "questions", rows.frame(TIMES, units), units)
        found = declared.charts_of(folder(CHAPTER))["cluster-metrics"].frame(database)
    medians = found.groupby("panel")["value"].median().to_dict()
    assert medians == pytest.approx({"speed-up": 1.6, "scale-up": 1.0})


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


def test_executors_of_another_cluster_need_a_folder_that_they_can_write():
    with pytest.raises(CannotMeasure, match="`storage` names a folder"):
        next(experiments.questions(bed(spark="spark://127.0.0.1:7077")))


# ---- with executors in processes of their own


@with_executors
def test_every_query_that_reads_is_answered_alike_and_a_difference_is_told(tmp_path):
    given = {"tuples": 1000, "largest": 2000, "answered": len(READING)}
    with opened(tmp_path / "runs", CHAPTER, given) as chapter, ExitStack() as opening:
        seats = list(experiments.all_seats(chapter.bed, opening))
        found = list(experiments.answers(chapter.bed, seats))
        small = {one.name: one for one in seats if one.n == 1000}
        duck, spark = small[DUCKDB], small[SPARK]
        duck.execute("UPDATE tenk1 SET unique3 = unique3 + 1 WHERE unique1 = 7")
        known = Answers()
        known.compare("22", duck.name, duck.answered("q22", 1990))
        with pytest.raises(RerunError, match=f"differently: by {duck.name}.*by {spark.name}"):
            known.compare("22", spark.name, spark.answered("q22", 1990))
    tuples = {row["query"]: row["answered"] for row in found if row["tuples"] == 1000}
    specified = {"q1": 10, "q2": 100, "q7": 1, "q8": 10, "q9": 100, "q10": 100, "q11": 100}
    assert tuples.items() >= (specified | {"q20": 1, "q22": 100}).items()
    assert set(tuples) == set(READING)


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
def test_the_chapter_runs_on_a_cluster_that_exists(standalone, tmp_path):
    place = tmp_path / "storage"
    place.mkdir()
    given = {"tuples": 1000, "largest": 2000, "pairs": 7}
    given |= {"spark": standalone, "storage": f"file://{place}"}
    with opened(tmp_path / "runs", CHAPTER, given) as chapter:
        found = chapter.run("questions").frame
        assert found["block"].nunique() == chapter.bed.fewer_pairs
        assert list(place.iterdir()) == []
    assert found["system"].dropna().str.endswith("of another cluster").all()
