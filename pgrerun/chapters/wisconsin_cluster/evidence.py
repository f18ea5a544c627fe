"""What the times say: DeWitt's three metrics, serial fractions, crossings, and a larger run's plan.

Speed-up, scale-up and size-up as DeWitt defines them for this benchmark (The Benchmark Handbook,
1993): one relation on more executors, a relation that grows with them, a relation that grows alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.wisconsin import evidence as wisconsin
from pgrerun.chapters.wisconsin.queries import label
from pgrerun.chapters.wisconsin_cluster import experiments
from pgrerun.chapters.wisconsin_cluster.experiments import DUCKDB, POSTGRESQL, QUESTIONS, at
from pgrerun.record import scaling, statistics
from pgrerun.record.statistics import Interval

BILLION = 10**9
BROADCAST = 10 * 2**20  # bytes of a relation that Spark sends whole to each executor, its default
SPEED_UP, SCALE_UP, SIZE_UP = "speed-up", "scale-up", "size-up"


@dataclass(frozen=True)
class Seen:
    """One run's observations, whatever its sizes: `kind` tells whose run it is."""

    kind: str
    observed: pd.DataFrame

    @cached_property
    def sizes(self) -> list[int]:
        """Tuples of the large relations, from the smallest."""
        return sorted({int(name.rpartition(" at ")[2]) for name in self.observed["variant"]})

    @cached_property
    def executors(self) -> int:
        """How many executors Spark had at most."""
        return max(int(n) for n in re.findall(r"Spark, (\d+)", " ".join(self.observed["variant"])))

    @property
    def spark(self) -> str:
        """Spark with all executors."""
        return experiments.spark_with(self.executors)

    def times(self, key: str, name: str, *sizes: int) -> np.ndarray:
        """Seconds of a contender, shape (blocks, sizes); of all sizes if none is given."""
        wanted = [at(name, n) for n in sizes or self.sizes]
        return wide(self.observed, key)[wanted].dropna().to_numpy()

    def metrics(self, key: str) -> dict[str, Interval]:
        """Speed-up (ideally the number of executors), scale-up (ideally 1), size-up."""
        least, most = self.sizes[0], self.sizes[-1]
        one = self.times(key, experiments.spark_with(1), least)[:, 0]
        many, grown, largest = (
            self.times(key, self.spark, n)[:, 0] for n in (least, least * self.executors, most)
        )
        return {
            SPEED_UP: statistics.ratio(one, many),
            SCALE_UP: statistics.ratio(one, grown),
            SIZE_UP: statistics.ratio(largest, many),
        }

    def serial(self, key: str) -> tuple[Interval, Interval]:
        """The serial fraction by Amdahl's law, and by Gustafson's."""
        least, p = self.sizes[0], [self.executors]
        one = self.times(key, experiments.spark_with(1), least)
        same, grown = (self.times(key, self.spark, n) for n in (least, least * self.executors))
        return scaling.amdahl(p, one / same), scaling.gustafson(p, one / grown)

    def grows(self, *keys: str) -> bool:
        """Whether Spark's times are sure to grow with the relation, from the least to the largest.

        Where they don't, a line through them says nothing.
        """
        return all(self.metrics(key)[SIZE_UP].low > 1 for key in keys)

    def crossing(self, key: str, other: str) -> Interval:
        """Tuples from which Spark with all executors takes less time than another engine.

        Nothing is known where Spark's times don't grow.
        """
        if not self.grows(key):
            return statistics.nothing()
        both = (self.times(key, name) for name in (self.spark, other))
        return scaling.crossing(self.sizes, *both)

    def moved(self, key: str) -> float:
        """Bytes per tuple that executors wrote for each other, at the largest size."""
        most = self.sizes[-1]
        return float(np.median(self.times(experiments.moved(key), self.spark, most))) / most


def seen(chapter: Chapter) -> list[Seen]:
    """The published run, then this one, as far as there are any."""
    return [Seen(kind, frame) for kind, frame in chapter.by_provenance(experiments.COMPARED)]


def three_metrics(chapter: Chapter) -> pd.DataFrame:
    """A row for each question: the metrics and the serial fractions, of the latest run there is."""
    last = seen(chapter)[-1]
    rows = [(label(key), *last.metrics(key).values(), *last.serial(key)) for key in QUESTIONS]
    grown = f"{SIZE_UP} ({last.sizes[-1] / last.sizes[0]:g} times the tuples)"
    speed = f"{SPEED_UP} ({last.executors} executors)"
    laws = ("serial fraction (Amdahl)", "serial fraction (Gustafson)")
    return pd.DataFrame(rows, columns=["question", speed, SCALE_UP, grown, *laws])


def crossings(chapter: Chapter) -> pd.DataFrame:
    """A row for each question and engine: from how many tuples on Spark is the faster one."""
    last = seen(chapter)[-1]
    rows = [
        (label(key), other, last.crossing(key, other))
        for key in QUESTIONS
        for other in (DUCKDB, POSTGRESQL)
    ]
    return pd.DataFrame(rows, columns=["question", "engine", "tuples"])


def planned(chapter: Chapter) -> pd.DataFrame:
    """A billion tuples on executors like these, by straight lines from what was measured.

    Columns: question, seconds (of one run), bytes_moved.
    """
    last = seen(chapter)[-1]
    rows = [
        (
            label(key),
            scaling.reckoned(last.sizes, last.times(key, last.spark), BILLION),
            last.moved(key) * BILLION,
        )
        for key in QUESTIONS
    ]
    return pd.DataFrame(rows, columns=["question", "seconds", "bytes_moved"])


def broadcast_until(chapter: Chapter) -> float:
    """Tuples of the large relation up to which the join's small one, a tenth, is sent whole."""
    return BROADCAST / (stored(chapter) / 10)


def stored(chapter: Chapter) -> float:
    """Bytes of a tuple in Parquet."""
    _, frame = chapter.by_provenance("stored")[-1]
    return float(wide(frame, "size").iloc[0, 0])


def over_one_thread(chapter: Chapter) -> Interval:
    """The claim's number: Spark with all executors over DuckDB at the largest size.

    The median over blocks of the geometric mean of the questions.
    """
    largest = experiments.sizes(chapter)[-1]
    ours = experiments.spark_with(chapter.parameters.executors)
    both = (
        pd.DataFrame(
            {key: chapter.table(experiments.COMPARED, key)[at(name, largest)] for key in QUESTIONS}
        )
        for name in (ours, DUCKDB)
    )
    return statistics.ratio(*map(wisconsin.mean, both), seed=chapter.parameters.seed)


def lines(chapter: Chapter) -> Iterator[tuple]:
    """Median seconds with their intervals: kind, question, contender, tuples, Interval."""
    for run in seen(chapter):
        for key in QUESTIONS:
            for name in (run.spark, DUCKDB, POSTGRESQL):
                columns = run.times(key, name).T
                for n, values in zip(run.sizes, columns, strict=True):
                    yield run.kind, label(key), name, n, statistics.median(values)
