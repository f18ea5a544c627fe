"""What is asked: queries that read, once; three of them for times, on each engine."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.contenders import PostgreSQL, Sql, population, without_states
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.relations import Wisconsin, citus
from pgrerun.lab.relations.checksum import Answers
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.spark import Spark, require, spark_sql
from pgrerun.progress import track

SQL = statements.beside(__file__)
ANSWERED, COMPARED = "every query that reads", "the questions on each engine"
POSTGRESQL, DUCKDB = "PostgreSQL", "DuckDB, one thread"
# a selection of a tenth, a join with a relation of a tenth, sums by group: what a
# cluster does without an exchange, with one of relations, and with one of few sums
JOIN = "q10"
QUESTIONS = ("q2", JOIN, "q22")
# queries that read, each once: where nothing is indexed some are the same but for their number
_FIRST = {query.query: query.key for query in reversed(queries.QUERIES)}
READING = tuple(key for query, key in reversed(_FIRST.items()) if query.startswith("retrieve"))
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
    """A contender on relations of one size, whose names say which; on Spark, so many executors."""

    def __init__(self, name: str, n: int, send: Send, spark: Spark | None = None, working: int = 0):
        self.name, self.n, self._send = at(name, n), n, send
        self.spark, self.working = spark, working

    def execute(self, sql: str) -> list[tuple]:
        sized = re.sub(
            rf"\b(tenk1|tenk2|onek|bprime|{queries.RESULT})\b",
            rf"\1_{self.n}",
            without_states(sql),
        )
        return self._send(spark_sql(sized) if self.spark else sized)

    def load(self, load: Callable[[Wisconsin], None], onek: bool) -> None:
        """Have the relations; `load` brings one that is generated.

        onek: whether also the small one, which only queries that aren't timed ask of.
        """
        for role in ("tenk1", "tenk2", *(["onek"] if onek else [])):
            load(replace(population(role, self.n), name=f"{role}_{self.n}"))
        for relation in ("bprime", queries.RESULT):
            self.execute(SQL.text("relations.drop", relation=relation))
        tenth = {"relation": "bprime", "source": "tenk2", "tuples": self.n // 10}
        self.execute(SQL.text("relations.bprime", **tenth))

    def lap(self, block: Block) -> dict[str, float]:
        """Seconds of each question, and of Spark's the bytes moved."""
        found = {}
        for key in QUESTIONS:
            instance = queries.instance(queries.BY_KEY[key], self.n, block)
            before = self.spark.moved() if self.spark else 0
            found[key] = self.run(instance)
            if self.spark:
                found[moved(key)] = self.spark.moved() - before
            self.tidy(instance)
        return found

    def use(self, block: Block | None = None) -> None:
        """Have only its own executors at work."""
        if self.spark:
            self.spark.use(self.working)

    def answered(self, key: str, seed: int) -> tuple[int, int]:
        """(tuples, checksum) of a query's answer."""
        instance = queries.instance(queries.BY_KEY[key], self.n, Block(0, seed, 0))
        self.run(instance)
        found = self.answer(instance)
        self.tidy(instance)
        return found


@experiment(claims=["wcluster-001"])
def compared(chapter: Chapter) -> None:
    """Queries that read, for their answers; then three on every engine, for times.

    Those are asked at each size, and on one executor at the smallest.
    """
    given = chapter.parameters
    if given.spark and not given.storage:
        raise CannotMeasure(
            "a place for relations",
            "executors of another cluster can't read this machine's scratch: the parameter"
            " `storage` names a folder that all of them can write",
        )
    units = dict.fromkeys(QUESTIONS, "s") | {moved(key): "bytes" for key in QUESTIONS}
    with ExitStack() as opened:
        seats = list(all_seats(chapter, opened))
        answers(chapter, seats)  # and so everything has run once
        variants = [Variant(seat.name, seat.lap, seat.use) for seat in seats]
        chapter.compare(COMPARED, variants, units, chapter.fewer_pairs, warmup=0)


def answered(chapter: Chapter) -> tuple[str, ...]:
    """The queries that are answered at the smallest size: what is timed, and others of all kinds.

    Those stand in the order of their kinds (selections, joins, projections, aggregates), so that
    every so-many-th is one of each.
    """
    others = [key for key in READING if key not in QUESTIONS]
    most = chapter.parameters.answered - len(QUESTIONS)
    taken = {*QUESTIONS, *(others[place * len(others) // most] for place in range(most))}
    return tuple(key for key in READING if key in taken)


def answers(chapter: Chapter, seats: Iterable[Seat]) -> None:
    """Have all engines answer alike: what `answered` says at the smallest size, elsewhere what is
    timed.

    RerunError if an answer differs.
    """
    given, known = chapter.parameters, Answers()
    for seat in seats:
        seat.use()
        every = seat.n == given.tuples and seat.working != 1
        for key in track(answered(chapter) if every else QUESTIONS, f"answers of {seat.name}"):
            found = seat.answered(key, given.seed)
            known.compare(f"{queries.label(key)}, of {seat.n} tuples,", seat.name, found)
            chapter.keep(ANSWERED, key, {"tuples": found[0]}, "tuples")


def all_seats(chapter: Chapter, opened: ExitStack) -> Iterator[Seat]:
    """All contenders with their relations loaded."""
    given = chapter.parameters
    java = require(0 if given.spark else given.executors)
    # the others load while Spark starts
    spark = opened.enter_context(Spark(given.executors, given.spark, given.storage))
    postgresql = opened.enter_context(PostgreSQL(chapter.server))
    duck = opened.enter_context(Duck())
    duck.execute(SQL.text("relations.one_thread"))
    spread = partial(citus.load, postgresql.connection, "unique2")

    def loaded(seat: Seat, load: Callable[[Wisconsin], None]) -> Seat:
        seat.load(load, onek=seat.n == given.tuples)
        return seat

    for n in sizes(chapter):
        yield loaded(Seat(DUCKDB, n, duck.execute), duck.load)
        yield loaded(Seat(POSTGRESQL, n, postgresql.execute), spread)
    for n in sizes(chapter):
        many = Seat(spark_with(given.executors), n, spark.execute, spark, given.executors)
        yield loaded(many, spark.load)
        if n == given.tuples:
            yield Seat(spark_with(1), n, spark.execute, spark, 1)
    stored = spark.bytes(f"tenk1_{n}") / n
    chapter.keep("stored", "Parquet", {"size": stored}, "bytes/tuple")
    chapter.run.environment["spark"] = {
        "version": spark.version,
        "java": java,
        "executors": "on this machine" if spark.own else "of another cluster",
        "postgresql": "spread by Citus" if citus.spreads(postgresql.connection) else "one server",
    }
