"""The queries on the clock: every engine, larger relations, forced scans, no memory for data."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.contenders import (
    AGAIN,
    CONFINED,
    DUCKDB,
    PLAIN,
    POSTGRESQL,
    SCANS,
    ColdPostgreSQL,
    DuckDB,
    PostgreSQL,
    Sql,
)
from pgrerun.chapters.wisconsin.experiments.counts import explain
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import machine
from pgrerun.lab.relations.checksum import Answers
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, side_by_side

PASSES = 7  # blocks, at most, at the largest size, where a block takes long
# and at sizes in between, which only bend or straighten a curve: no claim is judged by them
BETWEEN = 5
# seconds; a query that takes fewer runs several times in a block, and its median counts
PATIENCE = 0.05
CONVERTED = tuple(f"q{n}" for n in (1, *range(3, 8), *range(9, 15), 16, 18, 27, 30))
WITH, WITHOUT = "enough", "none for data"


def sizes(bed: Testbed) -> list[int]:
    """Tuples of the large relations, from the report's size to the largest."""
    steps = np.geomspace(queries.SPECIFIED, bed.parameters.largest, bed.parameters.sizes)
    return [round(n) for n in steps]


def timed(engine: Sql, query: str, n: int, block: Block, stored: bool, repeats: int) -> float:
    """Seconds of a query in a block: the median of so many runs, of a short one; undone each."""
    instance, found = queries.instance(queries.BY_KEY[query], n, block), []
    while not found or (len(found) < repeats and sum(found) < PATIENCE):
        if found:
            engine.tidy(instance)
        found.append(engine.run(instance, stored))
    return float(np.median(found))


def race(
    bed: Testbed, n: int, engines: Sequence[Sql], variants: Sequence[Row], pairs: int = 0
) -> Iterator[Row]:
    """Seconds of variants (engine, query, stored); RerunError where two engines answer a block's
    query differently. A query always follows others of the same engine, which fill its caches.

    AGAIN runs in POSTGRESQL's session, since how often a backend returns memory to the system, and
    has to ask for it again, goes by what it ran before, and can take a query a fifth of its time.
    """
    known = Answers()
    with side_by_side((one.name, one) for one in engines) as by_name:
        for one in engines:
            one.load(n)

        def measure(block: Block, engine: str, query: str, stored: bool) -> dict[str, float]:
            one = by_name[POSTGRESQL if engine == AGAIN else engine]
            instance = queries.instance(queries.BY_KEY[query], n, block)
            seconds = timed(one, query, n, block, stored, bed.parameters.repeats)
            asked = f"Query {query} of block {block.index}, over {n} tuples,"
            known.compare(asked, engine, one.answer(instance))
            one.tidy(instance)
            return {"seconds": seconds}

        pairs = bed.timed_pairs(pairs or bed.parameters.pairs)
        yield from bed.compare(measure, variants, pairs=pairs, warmup=0, fixed=True, tuples=n)


def of(engine: str, keys: Sequence[str], stored: bool) -> list[Row]:
    """The variants of an engine."""
    return [{"engine": engine, "query": key, "stored": stored} for key in keys]


@experiment(units={"seconds": "s"})
def times(bed: Testbed) -> Iterator[Row]:
    """All queries on every engine at the report's size.

    On PostgreSQL and DuckDB with storing the result and committing; on PostgreSQL as it chooses,
    twice, and confined to nested loops (joins alone) without. Both times it comes after the same
    session's queries, not DuckDB's, so that they start from the same state.
    """
    engines = [PostgreSQL(bed.server, name) for name in (POSTGRESQL, CONFINED)]
    every = tuple(queries.BY_KEY)
    variants = [
        *of(DUCKDB, every, True),
        *of(POSTGRESQL, every, True),
        *of(POSTGRESQL, every, False),
        *of(AGAIN, every, False),
        *of(CONFINED, queries.JOINS, False),
    ]
    yield from race(bed, queries.SPECIFIED, [*engines, DuckDB()], variants)


@experiment(units={"seconds": "s"})
def larger(bed: Testbed) -> Iterator[Row]:
    """All queries on PostgreSQL and DuckDB at larger sizes; at the largest also without storing."""
    _, *between, largest = sizes(bed)
    every = tuple(queries.BY_KEY)
    both = [*of(POSTGRESQL, every, True), *of(DUCKDB, every, True)]
    for n, passes in [*((n, BETWEEN) for n in between), (largest, PASSES)]:
        variants = both + of(POSTGRESQL, every, False) * (n == largest)
        pairs = min(passes, bed.parameters.pairs)
        for row in race(bed, n, [PostgreSQL(bed.server), DuckDB()], variants, pairs):
            yield row | {"largest": n == largest}


@experiment(units={"seconds": "s"})
def scans(bed: Testbed) -> Iterator[Row]:
    """Queries 5 and 6 by each scan in turn, at the report's size and at the largest.

    Nothing is stored.
    """
    for n in (queries.SPECIFIED, sizes(bed)[-1]):
        with side_by_side((scan, PostgreSQL(bed.server, scan)) for scan in SCANS) as forced:
            forced[SCANS[0]].load(n)
            measure = partial(_forced, bed, forced, n)
            variants = {"scan": SCANS, "query": ("q5", "q6")}
            pairs = bed.timed_pairs(bed.parameters.pairs)
            yield from bed.compare(measure, variants, pairs=pairs, fixed=True, tuples=n)


def _forced(
    bed: Testbed, forced: dict[str, PostgreSQL], n: int, block: Block, scan: str, query: str
) -> dict[str, float]:
    seconds = timed(forced[scan], query, n, block, False, bed.parameters.repeats)
    forced[scan].tidy(queries.instance(queries.BY_KEY[query], n, block))
    return {"seconds": seconds}


@experiment(units={"seconds": "s", "waiting": "of the time"})
def without_memory(bed: Testbed) -> Iterator[Row]:
    """Queries on this machine, and on one that differs in nothing but memory.

    That one's pool has one megabyte and is empty before each query, and files are read past the
    operating system's cache. Queries run as PostgreSQL chooses, and a tenth of the relation also by
    each scan that POSTGRES had; `waiting` is the share of an index scan's time in which it waits
    for reads. Nothing is stored.
    """
    chosen = "as it chooses"
    if not machine.direct_io(bed.cluster().scratch):
        raise CannotMeasure(
            "direct I/O",
            "the file system of the server's data can't be read past its cache, so memory can't be"
            " taken away",
        )
    without = bed.cluster(debug_io_direct="data", shared_buffers="1MB")
    servers = {WITH: bed.server, WITHOUT: without}
    kinds = {WITH: PostgreSQL, WITHOUT: ColdPostgreSQL}
    ways = [(POSTGRESQL, chosen), *((scan, scan) for scan in SCANS[:2])]
    with side_by_side(
        ((memory, scan), kinds[memory](server, name))
        for memory, server in servers.items()
        for name, scan in ways
    ) as engines:
        for memory in servers:
            engines[memory, chosen].load(queries.SPECIFIED)

        def measure(block: Block, memory: str, scan: str, query: str) -> dict[str, float]:
            engine, instance = (
                engines[memory, scan],
                queries.instance(queries.BY_KEY[query], queries.SPECIFIED),
            )
            seconds = timed(engine, query, queries.SPECIFIED, block, False, bed.parameters.repeats)
            engine.tidy(queries.instance(queries.BY_KEY[query], queries.SPECIFIED, block))
            if scan != PLAIN:
                return {"seconds": seconds}
            engine.execute("SET track_io_timing = on")
            engine.prepare(instance)
            seen = explain(engine, instance, stored=False)
            engine.execute("SET track_io_timing = off")
            return {"seconds": seconds, "waiting": seen.read_ms / seen.execution_ms}

        variants = [
            {"memory": memory, "scan": chosen, "query": key}
            for memory in servers
            for key in CONVERTED
        ] + [{"memory": WITHOUT, "scan": scan, "query": "q6"} for scan in SCANS[:2]]
        pairs = bed.timed_pairs(bed.parameters.pairs)
        yield from bed.compare(measure, variants, pairs=pairs, fixed=True)
