"""What is asked: queries that read, once; three of them for times, on each engine."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import product

from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.contenders import PostgreSQL, Sql, population, without_states
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.quel import Translator
from pgrerun.lab.relations import Wisconsin, citus
from pgrerun.lab.relations.checksum import Answers
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.spark import Spark, require, spark_sql
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.progress import track

SQL = statements.sql_folder(__file__)
POSTGRESQL, DUCKDB, SPARK = "PostgreSQL", "DuckDB, one thread", "Spark"
# a selection of a tenth, a join with a relation of a tenth, sums by group: what a
# cluster does without an exchange, with one of relations, and with one of few sums
QUESTIONS = ("q2", "q10", "q22")
# queries that read, each once: where nothing is indexed some are the same but for their number
_FIRST = {query.query: query.key for query in reversed(queries.QUERIES)}
READING = tuple(key for query, key in reversed(_FIRST.items()) if query.startswith("retrieve"))
Send = Callable[[str], list[tuple]]


def sizes(bed: Testbed) -> list[int]:
    """Tuples: of one executor, of all together, and the largest; each once."""
    given = bed.parameters
    together = given.tuples * given.executors
    return sorted({given.tuples, together, max(given.largest, together)})


class Seat(Sql):
    """An engine on relations of one size, whose names say which; on Spark, so many executors."""

    def __init__(self, name: str, n: int, send: Send, spark: Spark | None = None, working: int = 1):
        self.name, self.n, self._send = name, n, send
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

    def ask(self, key: str, block: Block) -> dict[str, float]:
        """Seconds of a question, and of Spark's the bytes moved."""
        instance = queries.instance(queries.BY_KEY[key], self.n, block)
        before = self.spark.moved() if self.spark else 0
        found = {"seconds": self.run(instance)}
        if self.spark:
            found["moved"] = self.spark.moved() - before
        self.tidy(instance)
        return found

    def use(self) -> None:
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


@experiment(
    units={
        "seconds": "s",
        "moved": "bytes",
        "answered": "tuples",
        "statement": "text",
        "stored": "bytes/tuple",
        "system": "text",
    }
)
def questions(bed: Testbed) -> Iterator[Row]:
    """Queries that read, for their answers; then three on every engine, for times.

    Those are asked at each size, and on one executor at the smallest. `moved` are the bytes that
    executors wrote for each other, `stored` are those of a tuple in Parquet. The other metrics are
    of rows that aren't timed.
    """
    given = bed.parameters
    if given.spark and not given.storage:
        raise CannotMeasure(
            "a place for relations",
            "executors of another cluster can't read this machine's scratch: the parameter"
            " `storage` names a folder that all of them can write",
        )
    with ExitStack() as opened:
        seats = list(all_seats(bed, opened))
        yield from answers(bed, seats)  # and so everything has run once
        yield apparatus(bed, seats)
        places = {(one.name, one.working, one.n): one for one in seats}

        def of(engine: str, executors: int, tuples: int, **_: object) -> Seat:
            return places[engine, executors, tuples]

        yield from bed.compare(
            lambda block, query, **seat: of(**seat).ask(query, block),
            [
                {"engine": engine, "executors": executors, "tuples": n, "query": key}
                | {"smallest": n == given.tuples, "largest": n == sizes(bed)[-1]}
                for (engine, executors, n), key in product(places, QUESTIONS)
            ],
            pairs=bed.fewer_pairs,
            prepare=lambda block, **seat: of(**seat).use(),
            warmup=0,
            fixed=True,
        )


def answered(most: int) -> tuple[str, ...]:
    """So many queries that are answered at the smallest size: what is timed, others of all kinds.

    Those stand in the order of their kinds (selections, joins, projections, aggregates), so that
    every so-many-th is one of each.
    """
    others = [key for key in READING if key not in QUESTIONS]
    more = most - len(QUESTIONS)
    taken = {*QUESTIONS, *(others[place * len(others) // more] for place in range(more))}
    return tuple(key for key in READING if key in taken)


def answers(bed: Testbed, seats: Iterable[Seat]) -> Iterator[Row]:
    """Have all engines answer alike: what `answered` says at the smallest size, elsewhere what is
    timed.

    RerunError if an answer differs.
    """
    given, known = bed.parameters, Answers()
    for seat in seats:
        seat.use()
        every = seat.n == given.tuples and not (seat.spark and seat.working == 1)
        asked = answered(given.answered) if every else QUESTIONS
        for key in track(asked, f"answers of {seat.name}"):
            found = seat.answered(key, given.seed)
            known.compare(f"{queries.label(key)}, of {seat.n} tuples,", seat.name, found)
            yield {
                "engine": seat.name,
                "executors": seat.working,
                "tuples": seat.n,
                "query": key,
                "answered": found[0],
                "statement": statement(key),
            }


def statement(key: str) -> str:
    """A query in Spark's SQL, a long list of columns cut."""
    instance = queries.instance(queries.BY_KEY[key], queries.SPECIFIED)
    sql = spark_sql(without_states(Translator().sql(instance.statement)))
    head, columns, rest = re.fullmatch(r"(.*?SELECT )(.*?)( FROM .*)", sql, re.DOTALL).groups()  # type: ignore[union-attr]
    first, second, *more = [*columns.split(", "), ""]
    return f"{head}{f'{first}, {second}, …' if len(more) > 2 else columns}{rest}"


def apparatus(bed: Testbed, seats: Iterable[Seat]) -> Row:
    """What Spark is, and how many bytes of Parquet it keeps for a tuple."""
    [last] = [one for one in seats if one.spark and one.n == sizes(bed)[-1]]
    assert last.spark is not None
    where = "this machine" if last.spark.own else "another cluster"
    java = require(0 if bed.parameters.spark else bed.parameters.executors)
    return {
        "engine": SPARK,
        "executors": last.working,
        "tuples": last.n,
        "stored": last.spark.bytes(f"tenk1_{last.n}") / last.n,
        "system": f"Spark {last.spark.version}, Java {java}, executors of {where}",
    }


def all_seats(bed: Testbed, opened: ExitStack) -> Iterator[Seat]:
    """All engines with their relations loaded."""
    given = bed.parameters
    require(0 if given.spark else given.executors)
    # the others load while Spark starts
    spark = opened.enter_context(Spark(given.executors, given.spark, given.storage))
    postgresql = opened.enter_context(PostgreSQL(bed.server))
    duck = opened.enter_context(Duck())
    duck.execute(SQL.text("relations.one_thread"))
    spread = partial(citus.load, postgresql.connection, "unique2")

    def loaded(seat: Seat, load: Callable[[Wisconsin], None]) -> Seat:
        seat.load(load, onek=seat.n == given.tuples)
        return seat

    for n in sizes(bed):
        yield loaded(Seat(DUCKDB, n, duck.execute), duck.load)
        yield loaded(Seat(POSTGRESQL, n, postgresql.execute), spread)
    for n in sizes(bed):
        many = Seat(SPARK, n, spark.execute, spark, given.executors)
        yield loaded(many, spark.load)
        if n == given.tuples:
            yield Seat(SPARK, n, spark.execute, spark, 1)
