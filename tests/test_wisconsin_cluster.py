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

import numpy as np
import pandas as pd
import pytest
from executors import with_executors

from pgrerun.chapter import Chapter
from pgrerun.chapters import wisconsin_cluster
from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin_cluster.evidence import Seen
from pgrerun.chapters.wisconsin_cluster.experiments import (
    ANSWERED,
    COMPARED,
    DUCKDB,
    POSTGRESQL,
    QUESTIONS,
    READING,
    at,
    moved,
    sizes,
    spark_with,
)
from pgrerun.errors import CannotMeasure, ParameterError, RerunError
from pgrerun.lab.relations.checksum import Answers
from pgrerun.parameters import chapter_parameters
from pgrerun.record import scaling
from pgrerun.record.statistics import Interval

experiments = wisconsin_cluster.experiments
evidence, sentences = wisconsin_cluster.evidence, wisconsin_cluster.sentences


@pytest.fixture
def open_one(tmp_path):
    """Opens the chapter with parameters, its record in a folder of its own."""
    opened = []

    def make(**given) -> Chapter:
        chapter = Chapter(
            "wisconsin_cluster",
            chapter_parameters("wisconsin_cluster", given),
            records=tmp_path / "runs",
        )
        opened.append(chapter)
        return chapter

    yield make
    for chapter in opened:
        chapter.leave()


def observe(chapter: Chapter, seconds: dict[str, float]) -> None:
    """Five blocks in which every question takes so long, one a bit more than the other."""
    for block in range(5):
        for position, (name, value) in enumerate(seconds.items()):
            metrics = dict.fromkeys(QUESTIONS, value * (1 + block / 1000))
            if name.startswith("Spark"):
                metrics |= {moved(key): 1000.0 for key in QUESTIONS}
            chapter.run.observe(
                COMPARED,
                name,
                block,
                metrics,
                units=dict.fromkeys(metrics, "s"),
                seed=1,
                position=position,
                started_at="",
                flags={},
            )
    chapter.keep("stored", "Parquet", {"size": 30.0}, "bytes/tuple")


ONE, MANY = spark_with(1), spark_with(2)
# two executors are 1.6 times as fast, and on twice the tuples as fast as one
TIMES = {
    at(ONE, 1000): 1.6,
    at(MANY, 1000): 1.0,
    at(MANY, 2000): 1.6,
    at(DUCKDB, 1000): 0.1,
    at(DUCKDB, 2000): 0.2,
    at(POSTGRESQL, 1000): 1.0,
    at(POSTGRESQL, 2000): 2.0,
}


def test_the_metrics_are_what_was_put_in(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    seen = evidence.seen(chapter)[-1]
    assert (seen.executors, seen.sizes) == (2, [1000, 2000])
    found = seen.metrics("q10")
    assert found["speed-up"].estimate == pytest.approx(1.6)
    assert found["scale-up"].estimate == pytest.approx(1.0)
    assert found["size-up"].estimate == pytest.approx(1.6)
    amdahl, gustafson = seen.serial("q10")
    assert (amdahl.estimate, gustafson.estimate) == pytest.approx((0.25, 0.0), abs=1e-9)


def test_where_lines_cross_is_said_in_words(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    seen = evidence.seen(chapter)[-1]
    assert seen.crossing("q2", DUCKDB).estimate == scaling.NEVER
    # Spark: 0.4 + 0.0006 n, PostgreSQL: 0.001 n
    assert seen.crossing("q2", POSTGRESQL).estimate == pytest.approx(1000)
    words = sentences.crossings(chapter).frame
    of_duckdb = words[words["faster than"] == DUCKDB]["from"]
    assert set(of_duckdb) == {"at no size"}
    assert words[words["faster than"] == POSTGRESQL]["from"].str.startswith("1,000 [").all()


@pytest.mark.parametrize(
    ("crossing", "words"),
    [
        (Interval(384_886_732, 10_941_062, np.inf, 9), "some 380,000,000 [11,000,000, no size]"),
        (Interval(np.inf, 48_207_745, np.inf, 9), "at no size; 48,000,000 can't be excluded"),
        (Interval(1234, 1199, 1299, 9), "1,200 [1,200, 1,300]"),
        (Interval(0, 0, 0, 9), "at any size"),
    ],
)
def test_a_crossing_has_no_more_digits_than_a_straight_line(open_one, monkeypatch, crossing, words):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    monkeypatch.setattr(Seen, "crossing", lambda *_: crossing)
    assert sentences.crossings(chapter).frame["from"].str.endswith(words).all()


def test_executors_that_make_a_question_slower_are_said_to(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES | {at(MANY, 1000): 2.0})
    said = chapter.show(sentences.speed_up)
    assert "slower than one for 2: " in said and "faster" not in said
    assert "0.8" in wisconsin_cluster.charts.metrics(chapter).caption


def test_from_which_size_on_spark_is_ahead_is_said(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES | {at(DUCKDB, 2000): 3.0})
    said = wisconsin_cluster.charts.growth(chapter).caption
    assert "less time than both others from 2,000 tuples on (2: " in said


def test_statements_have_short_lines_and_all_clauses():
    for key in QUESTIONS:
        said = sentences.statement(key)
        assert max(map(len, said.splitlines())) <= 80 and "\nFROM " in said
        assert said.startswith("-- ") and ";" in said


def test_the_claims_number_is_taken_at_the_largest_size(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    assert evidence.over_one_thread(chapter).estimate == pytest.approx(8.0)


def test_the_plan_follows_the_lines(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    found = evidence.planned(chapter)
    assert found["seconds"].tolist() == pytest.approx([0.4 + 0.0006e9] * 3, rel=0.01)
    assert found["bytes_moved"].tolist() == pytest.approx([0.5e9] * 3)
    said = str(sentences.plan(chapter))
    assert "30 GB" in said and "one run of all questions" in said and "does not grow" not in said


def test_of_times_that_do_not_grow_nothing_is_concluded(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES | {at(MANY, 2000): 0.9})
    said = str(sentences.plan(chapter))
    assert "too small" in said and "Spark's time does not grow beyond its noise for 2: " in said
    assert set(sentences.crossings(chapter).frame["from"].str.slice(0, 14)) == {"not to be told"}


def test_a_plan_is_made_of_the_questions_whose_times_grow(open_one, monkeypatch):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    monkeypatch.setattr(Seen, "grows", lambda _, *keys: keys != ("q10",))
    said = str(sentences.plan(chapter))
    assert "time grows for 2: " in said and "not grow beyond its noise for 10: " in said
    assert "one run of those that grow" in said and "The join breaks first" not in said


def test_charts_and_tables_are_drawn_of_any_run(open_one):
    chapter = open_one(tuples=1000, largest=2000)
    observe(chapter, TIMES)
    for what in (wisconsin_cluster.charts.metrics, wisconsin_cluster.charts.growth):
        assert chapter.show(what) is not None
    assert "2 executors are faster than one for 2: " in chapter.show(sentences.speed_up)
    grown = chapter.show(wisconsin_cluster.charts.growth).caption
    assert grown.startswith("At the largest size that was measured Spark takes less time than both")
    assert (
        "With 2,000 tuples its time over that of the faster of the other two is 8.0 (2: " in grown
    )
    shown = chapter.show(sentences.metrics).frame
    assert isinstance(shown, pd.DataFrame) and len(shown) == len(QUESTIONS)


def test_a_run_is_read_whatever_its_sizes_are():
    names = [at(spark_with(16), 500), at(spark_with(1), 500), at(DUCKDB, 500)]
    seen = Seen("published", pd.DataFrame({"variant": names}))
    assert (seen.executors, seen.sizes, seen.spark) == (16, [500], "Spark, 16 executors")


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
        chapter_parameters("wisconsin_cluster", given)
    assert words in str(error.value) and "secret" not in str(error.value)
    assert "Nothing was started" in str(error.value)


def test_the_largest_relation_is_at_least_that_of_all_executors(open_one):
    assert sizes(open_one(tuples=5000, largest=2000)) == [5000, 10_000]


def test_executors_elsewhere_need_a_place_that_they_can_write(open_one):
    chapter = open_one(spark="spark://127.0.0.1:7077")
    with pytest.raises(CannotMeasure, match="`storage` names a folder"):
        wisconsin_cluster.experiments.compared(chapter)


# ---- with executors in processes of their own


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
def test_where_time_is_short_some_queries_of_each_kind_are_answered(open_one, number, keys):
    assert experiments.answered(open_one(answered=number)) == keys


@with_executors
def test_every_query_that_reads_is_answered_alike_and_a_difference_is_told(open_one):
    chapter = open_one(tuples=1000, largest=2000, answered=len(READING))
    with ExitStack() as opened:
        seats = list(experiments.all_seats(chapter, opened))
        experiments.answers(chapter, seats)
        spark, duck = seats[:2]
        duck.execute("UPDATE tenk1 SET unique3 = unique3 + 1 WHERE unique1 = 7")
        known = Answers()
        known.compare("22", duck.name, duck.answered("q22", 1990))
        with pytest.raises(RerunError, match=f"differently: by {duck.name}.*by {spark.name}"):
            known.compare("22", spark.name, spark.answered("q22", 1990))
    tuples = chapter.run.observations(ANSWERED).set_index("variant")["value"]
    assert set(tuples.index) == set(READING)
    specified = {"q1": 10, "q2": 100, "q7": 1, "q8": 10, "q9": 100, "q10": 100, "q11": 100}
    assert {key: tuples[key] for key in specified} == specified
    assert (tuples[["q20", "q22"]] == [1, 100]).all()
    assert len(sentences.answers(chapter).frame) == len(READING)


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
    chapter = open_one(
        spark=standalone, storage=f"file://{place}", tuples=1000, largest=2000, pairs=7
    )
    experiments.compared(chapter)
    assert list(place.iterdir()) == []
    assert chapter.run.environment["spark"]["executors"] == "of another cluster"
    assert "another cluster's" in str(chapter.show(sentences.apparatus))
    seen = evidence.seen(chapter)[-1]
    assert seen.times("q10", seen.spark).shape == (chapter.fewer_pairs, 2)
