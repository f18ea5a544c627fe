"""What is measured: three questions on one executor of Spark, on all, DuckDB and PostgreSQL."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.contenders import Sql, population, without_states
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock
from pgrerun.lab.relations import Wisconsin, citus
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.spark import Spark, require, spark_sql

SQL = statements.beside(__file__)
COMPARED = "the questions on each engine"
POSTGRESQL, DUCKDB = "PostgreSQL", "DuckDB, one thread"
# a selection of a tenth, a join with a relation of a tenth, sums by group: what a
# cluster does without an exchange, with one of relations, and with one of few sums
QUESTIONS = ("q2", "q10", "q22")
Send = Callable[[str], list[tuple]]


def spark_with(executors: int) -> str:
    """What Spark is called with so many executors."""
    return f"Spark, {executors} executor{'s' * (executors > 1)}"


def at(name: str, n: int) -> str:
    """What a contender is called on relations of n tuples."""
    return f"{name} at {n}"


def moved(key: str) -> str:
    """The metric of the bytes that executors wrote for each other in a query."""
    return f"{key} moved"


def sizes(chapter: Chapter) -> list[int]:
    """Tuples: of one executor, of all together, and the largest; each once."""
    given = chapter.parameters
    together = given.tuples * given.executors
    return sorted({given.tuples, together, max(given.largest, together)})


class Seat(Sql):
    """A contender on relations of one size, whose names say which."""

    def __init__(self, name: str, n: int, send: Send, spark: Spark | None = None):
        self.name, self.n, self.spark = at(name, n), n, spark
        self._send = send

    def execute(self, sql: str) -> list[tuple]:
        sized = re.sub(
            rf"\b(tenk1|tenk2|bprime|{queries.RESULT})\b", rf"\1_{self.n}", without_states(sql)
        )
        return self._send(spark_sql(sized) if self.spark else sized)

    def load(self, load: Callable[[Wisconsin], None]) -> None:
        """Have the relations; `load` brings one of the two large ones."""
        for role in ("tenk1", "tenk2"):
            load(replace(population(role, self.n), name=f"{role}_{self.n}"))
        for relation in ("bprime", queries.RESULT):
            self.execute(SQL.text("relations.drop", relation=relation))
        given = {"relation": "bprime", "source": "tenk2", "tuples": self.n // 10}
        self.execute(SQL.text("relations.bprime", **given))

    def attach(self, owner: Spark) -> None:
        """Have the relations of another application of Spark's."""
        for role in ("tenk1", "tenk2", "bprime"):
            name = f"{role}_{self.n}"
            self.spark.attach(name, owner.place(name))

    def lap(self, answers: dict, block: Block) -> dict[str, float]:
        """Seconds of each question, and of Spark's the bytes moved.

        Answers are compared in the warm-up and in the first block, since Spark takes longer for a
        checksum than for what it asks about; RerunError if one differs.
        """
        found = {}
        for key in QUESTIONS:
            instance = queries.instance(queries.BY_KEY[key], self.n, block)
            before = self.spark.moved() if self.spark else 0
            found[key] = self.run(instance)
            if self.spark:
                found[moved(key)] = self.spark.moved() - before
            if block.index <= 0:
                self._check(answers, block, key, self.answer(instance))
            self.tidy(instance)
        return found

    def _check(self, answers: dict, block: Block, key: str, answer: tuple[int, int]) -> None:
        known = answers.setdefault((self.n, block.index, key), (self.name, answer))
        if known[1] != answer:
            raise RerunError(
                f"{queries.label(key)} is answered differently: by {known[0]} with"
                f" {known[1]}, by {self.name} with {answer} (tuples, checksum)."
            )


@experiment(claims=["wcluster-001"])
def compared(chapter: Chapter) -> None:
    """The questions on every engine at every size, and on one executor at the smallest."""
    given = chapter.parameters
    if given.spark and not given.storage:
        raise CannotMeasure(
            "a place for relations",
            "executors of another cluster can't read this machine's scratch: the parameter"
            " `storage` names a folder that all of them can write",
        )
    units = dict.fromkeys(QUESTIONS, "s") | {moved(key): "bytes" for key in QUESTIONS}
    with ExitStack() as opened:
        seats = list(_seats(chapter, opened))
        answers: dict = {}
        variants = [Variant(seat.name, partial(seat.lap, answers)) for seat in seats]
        chapter.compare(COMPARED, variants, units)


def _seats(chapter: Chapter, opened: ExitStack) -> Iterator[Seat]:
    """All contenders with their relations loaded."""
    given = chapter.parameters
    java = require(0 if given.spark else given.executors + 1)
    connection = opened.enter_context(chapter.server.connect())
    connection.prepare_threshold = None  # every statement is planned for its own constants
    duck = opened.enter_context(Duck())
    duck.execute(SQL.text("relations.one_thread"))
    with clock.stopwatch() as started:
        many, one = (
            opened.enter_context(Spark(executors, given.spark, given.storage))
            for executors in (given.executors, 1)
        )
        versions = many.version, one.version
    spread = []

    def load(relation: Wisconsin) -> None:
        relation.load(connection)
        spread.append(citus.spread(connection, relation.name, "unique2"))

    for n in sizes(chapter):
        yield from _loaded(
            (Seat(spark_with(given.executors), n, many.execute, many), many.load),
            (Seat(DUCKDB, n, duck.execute), duck.load),
            (Seat(POSTGRESQL, n, partial(_fetched, connection)), load),
        )
        if n == given.tuples:
            alone = Seat(spark_with(1), n, one.execute, one)
            alone.attach(many)
            yield alone
    stored = many.bytes(f"tenk1_{n}") / n
    chapter.keep("stored", "Parquet", {"size": stored}, "bytes/tuple")
    chapter.keep("started", "two applications", {"time": started.seconds}, "s")
    chapter.run.environment["spark"] = {
        "version": versions[0],
        "java": java,
        "executors": "on this machine" if many.own else "of another cluster",
        "postgresql": "spread by Citus" if all(spread) else "one server",
    }


def _loaded(*engines: tuple[Seat, Callable[[Wisconsin], None]]) -> Iterable[Seat]:
    for seat, load in engines:
        seat.load(load)
        yield seat


def _fetched(connection, sql: str) -> list[tuple]:
    cursor = connection.execute(sql)
    return cursor.fetchall() if cursor.description else []
