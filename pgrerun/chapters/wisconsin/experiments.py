"""What is run: the queries by all contenders, their plans and pages, forced scans, two machines."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.wisconsin import contenders, queries
from pgrerun.chapters.wisconsin.contenders import SQL, Contender, DuckDB, Miniature, PostgreSQL
from pgrerun.chapters.wisconsin.queries import BY_KEY, SPECIFIED, Query
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab import ingres
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, machine, plans, sizes
from pgrerun.lab.quel import Translator, read, tree
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.server import Cluster, Server
from pgrerun.record import printed

REPORT = "queries at the report's size"
MACHINES = "two machines"
SEEN, CHECKED = "all visible", "versions to check"
UNCACHED = "a machine without memory"
FORCED_READS = "forced scans without memory"
WAITING = "waiting for reads"
FINDING = "with and without storing"

COUNTED = SPECIFIED // 10  # tuples of the large relations where the miniature's pages are counted
PASSES = 7  # blocks, at most, at the largest size, where a block takes long
# and at sizes in between, which only bend or straighten a curve: no claim is judged by them
BETWEEN = 5
# seconds; a query that takes fewer runs several times in a block, and its median counts
PATIENCE = 0.05
SCANS = (contenders.SEQUENTIAL, contenders.PLAIN, contenders.BITMAP)
CHANGES = ("q26", "q29", "q27", "q30", "q28", "q31", "q32", "plain")
CONVERTED = ("q1", "q3", "q4", "q5", "q6", "q7", "q18", "q27", "q30")


def all_sizes(chapter: Chapter) -> list[int]:
    """Tuples of the large relations, from the report's size to the largest."""
    steps = np.geomspace(SPECIFIED, chapter.parameters.largest, chapter.parameters.sizes)
    return [round(n) for n in steps]


def at(n: int) -> str:
    """The name of the experiment with the queries at a size."""
    return REPORT if n == SPECIFIED else f"queries at {n} tuples"


def forced_at(n: int) -> str:
    """The name of the experiment with the forced scans at a size."""
    return f"forced scans at {n} tuples"


# ---- times


def race(
    chapter: Chapter,
    name: str,
    n: int,
    competing: Sequence[Contender],
    among: Sequence[Query] = queries.QUERIES,
    pairs: int = 0,
    warmup: int = 0,
) -> None:
    """Every contender runs every query in each block; observations in seconds, a metric per query.

    A query that is over in no time runs as often as the chapter's parameter says, and the median is
    the block's observation. RerunError if two contenders answer a block's queries differently.
    """
    pairs = pairs or chapter.parameters.pairs
    if len(chapter.run.finished(name)) >= pairs * len(competing):
        return
    answers: dict[str, tuple[int, int]] = {}
    with ExitStack() as open_ones:
        for contender in competing:
            open_ones.enter_context(contender).load(n)
        lap = partial(_lap, n=n, among=among, answers=answers, repeats=chapter.parameters.repeats)
        chapter.compare(
            name,
            [Variant(contender.name, partial(lap, contender)) for contender in competing],
            {query.key: "s" for query in among},
            pairs,
            warmup,
            answer=lambda block: sorted(answers.items()),
        )


def _lap(
    contender: Contender,
    block: Block,
    n: int,
    among: Sequence[Query],
    answers: dict[str, tuple[int, int]],
    repeats: int,
) -> dict[str, float]:
    """Seconds of each query; `answers` are filled in."""
    seconds = {}
    shift = block.index % len(among)  # no query always follows the same other
    for query in (*among[shift:], *among[:shift]):
        instance, times = queries.instance(query, n, block), []
        while not times or (len(times) < repeats and sum(times) < PATIENCE):
            if times:
                contender.tidy(instance)
            times.append(contender.run(instance))
        answers[query.key] = contender.answer(instance)
        contender.tidy(instance)
        seconds[query.key] = float(np.median(times))
    return seconds


AT_REPORT_SIZE = ["lai-031", "lai-034", "lai-035", "lai-036", "lai-037", "lai-038"]
# queries of those claims: what they take without storing and committing is measured as well
COMPARED = (
    *("q1", "q3", "q9", "q10", "q11", "q12", "q13", "q14", "q16", "q18", "onek"),
    *("q26", "q27", "q29", "q30"),
)


@experiment(claims=["lai-028", *AT_REPORT_SIZE])
def at_report_size(chapter: Chapter) -> None:
    """All contenders at the report's size."""
    race(chapter, REPORT, SPECIFIED, contenders.contenders(chapter))


@experiment(claims=AT_REPORT_SIZE)
def without_storing(chapter: Chapter) -> None:
    """The queries of those claims at the report's size, as they are and without storing."""
    both = [PostgreSQL(chapter.server), contenders.Finding(chapter.server)]
    race(chapter, FINDING, SPECIFIED, both, [BY_KEY[key] for key in COMPARED])


@experiment()
def larger(chapter: Chapter) -> None:
    """PostgreSQL as it chooses and DuckDB at the larger sizes."""
    _, *between, largest = all_sizes(chapter)
    for n, passes in [*((n, BETWEEN) for n in between), (largest, PASSES)]:
        competing = [PostgreSQL(chapter.server), DuckDB()]
        race(chapter, at(n), n, competing, pairs=min(passes, chapter.parameters.pairs))


@experiment()
def forced_scans(chapter: Chapter) -> None:
    """Queries 5 and 6 by each scan in turn, at the report's size and at the largest."""
    among = [BY_KEY["q5"], BY_KEY["q6"]]
    for n in (SPECIFIED, all_sizes(chapter)[-1]):
        forced = [PostgreSQL(chapter.server, scan) for scan in SCANS]
        race(chapter, forced_at(n), n, forced, among, warmup=1)


@experiment(claims=["lai-032", "lai-033", "lai-044"])
def two_machines(chapter: Chapter) -> None:
    """Queries on this machine, and on one that differs in nothing but memory.

    Its pool has one megabyte, and files are read past the operating system's cache.
    """
    poor = _without_memory(chapter)
    competing = [PostgreSQL(chapter.server), PostgreSQL(poor, UNCACHED)]
    race(chapter, MACHINES, SPECIFIED, competing, [BY_KEY[key] for key in CONVERTED])
    forced = [PostgreSQL(poor, scan) for scan in (contenders.SEQUENTIAL, contenders.PLAIN)]
    race(chapter, FORCED_READS, SPECIFIED, forced, [BY_KEY["q6"]], warmup=1)
    waited = [Variant(contenders.PLAIN, partial(_waited, poor))]
    chapter.compare(WAITING, waited, {"share": "of the time"}, warmup=0)


def _waited(poor: Server, block: Block) -> dict[str, float]:
    """Share of its time that a tenth of a relation by an index not clustered waits for reads."""
    with PostgreSQL(poor, contenders.PLAIN) as contender:
        contender.execute("SET track_io_timing = on")
        found = plan(contender, "q6", execute=True, stored=False)
    return {"share": found.read_ms / found.execution_ms}


def _without_memory(chapter: Chapter) -> Cluster:
    if not machine.direct_io(chapter.cluster().scratch):
        raise CannotMeasure(
            "direct I/O",
            "the file system of the server's data can't be read past its cache, so memory can't be"
            " taken away",
        )
    return chapter.cluster(debug_io_direct="data", shared_buffers="1MB")


@experiment(claims=["lai-041"])
def instructions(chapter: Chapter) -> pd.Series:
    """Instructions of scans at the report's size, by name; nothing is stored.

    SEQUENTIAL, PLAIN and BITMAP select a tenth of the relation by an index that isn't clustered.
    SEEN scans a relation whose pages say that all tuples are visible to all, CHECKED one whose
    don't: there one tuple of each page was deleted by a transaction that was rolled back, so its
    tuples are the same and all visible, but each has to be looked at to know.
    """
    with PostgreSQL(chapter.server) as contender:
        contender.load(SPECIFIED)
        tenth = Translator().sql(_shown("q6"))
        relations = {SEEN: "seen", CHECKED: "checked"}
        for name in relations.values():
            Wisconsin(name, SPECIFIED).load(contender.connection, vacuum=False)
            SQL.run(contender.connection, "relations.vacuum", relation=name)
        per_page = SPECIFIED // sizes.pages(contender.connection, "checked")
        with contender.connection.transaction(force_rollback=True):
            SQL.run(contender.connection, "versions.delete", relation="checked", per_page=per_page)
    free = dict.fromkeys(contenders.SETTINGS[contenders.PLAIN], "on")
    counted = {
        scan: (contenders.SETTINGS[scan], f"{tenth} OFFSET {SPECIFIED}") for scan in SCANS
    } | {
        state: (free, SQL.text("versions.scan", relation=name)) for state, name in relations.items()
    }
    found = callgrind.executed(chapter.cluster(), counted)
    with chapter.server.connect() as connection:
        for name in relations.values():
            connection.execute(f"DROP TABLE {name}".encode())
    return found


def on_this_machine(chapter: Chapter) -> bool:
    """Whether the server under test is known to run here, as DuckDB and the miniature do."""
    return not chapter.borrowed or chapter.server.can("processes")


# ---- answers, plans, pages


@experiment()
def answers(chapter: Chapter, tuples: int = SPECIFIED) -> pd.DataFrame:
    """Every query as specified, run by PostgreSQL and DuckDB: query, tuples, checksum.

    RerunError if the two disagree.
    """
    rows = []
    with PostgreSQL(chapter.server) as postgresql, DuckDB() as duckdb:
        both = (postgresql, duckdb)
        for contender in both:
            contender.load(tuples)
        for query in queries.QUERIES:
            instance, given = queries.instance(query, tuples), {}
            for contender in both:
                contender.run(instance)
                given[contender.name] = contender.answer(instance)
                contender.tidy(instance)
            if len(set(given.values())) > 1:
                told = ", ".join(f"by {name} with {answer}" for name, answer in given.items())
                raise RerunError(
                    f"Query {query.key} is answered differently: {told} (tuples, checksum)."
                )
            rows.append((queries.label(query.key), *given[postgresql.name]))
    return pd.DataFrame(rows, columns=["query", "tuples", "checksum"])


@experiment()
def chosen_plans(chapter: Chapter, tuples: int = SPECIFIED) -> pd.DataFrame:
    """The plans at the report's size: query, as_it_chooses, nested_loops_only.

    The last is empty where it is the same.
    """
    rows, server = [], chapter.server
    with PostgreSQL(server) as free, PostgreSQL(server, contenders.CONFINED) as confined:
        free.load(tuples)
        for key in queries.KEYS:
            chosen, other = (plan(contender, key, tuples).shape() for contender in (free, confined))
            rows.append((queries.label(key), chosen, other if other != chosen else ""))
    return pd.DataFrame(rows, columns=["query", "as_it_chooses", "nested_loops_only"])


def plan(
    contender: PostgreSQL,
    key: str,
    n: int = SPECIFIED,
    *,
    execute: bool = False,
    stored: bool = True,
) -> plans.Plan:
    """The plan of a query over `n` tuples; unless `stored`, of one that shows its result."""
    statement = queries.instance(BY_KEY[key], n).statement if stored else _shown(key, n)
    return plans.explain(contender.connection, Translator().sql(statement), execute=execute)


def _shown(key: str, n: int = SPECIFIED) -> tree.Statement:
    """A query over `n` tuples, showing its result instead of storing it."""
    return read(queries.instance(BY_KEY[key], n).text.replace("into tmp ", ""))[0]


@experiment()
def pairs_compared(chapter: Chapter, tuples: int = SPECIFIED) -> pd.DataFrame:
    """Pairs of tuples that a nested loop looked at and found not to match.

    At the report's size, without an index and with a clustered one. Columns: query, rejected,
    joined.
    """
    rows = []
    with PostgreSQL(chapter.server, contenders.CONFINED) as confined:
        confined.load(tuples)
        # a restricted relation is its first tenth, so that joinABprime counts as joinAselB
        for key in ("q9", "q11", "q12", "q14"):
            executed = plan(confined, key, tuples, execute=True)
            rejected = 0
            for node in executed.walk():
                per_loop = node.properties.get("Rows Removed by Join Filter", 0)
                rejected += int(per_loop * (node.loops or 0))
            rows.append((queries.label(key), rejected, int(executed.rows_actual)))
    return pd.DataFrame(rows, columns=["query", "rejected", "joined"])


@experiment(claims=["lai-040"])
def pages_touched(chapter: Chapter, tuples: int = SPECIFIED) -> pd.DataFrame:
    """Pages of heap and index that selections and MIN touch at the report's size.

    Columns: query, scan, pages, tuples.
    """
    chosen = [(contenders.POSTGRESQL, f"q{number}") for number in (*range(1, 7), 20, 23, 21, 24)]
    rows = []
    for name, key in [*chosen, *((scan, "q6") for scan in SCANS)]:
        with PostgreSQL(chapter.server, name) as contender:
            contender.load(tuples)
            found = plan(contender, key, tuples, execute=True, stored=False)
        label = queries.label(key) + (f", {name}" if name in SCANS else "")
        rows.append((label, found.node_type, found.page_accesses, int(found.rows_actual)))
    return pd.DataFrame(rows, columns=["query", "scan", "pages", "tuples"])


@experiment()
def changes(chapter: Chapter, tuples: int = SPECIFIED) -> pd.DataFrame:
    """Pages touched and WAL records of the single-tuple queries, at the report's size.

    Columns: query, found_by, pages, wal_records.
    """
    rows = []
    with PostgreSQL(chapter.server) as contender:
        contender.load(tuples)
        for key in CHANGES:
            instance = queries.instance(BY_KEY[key], tuples)
            contender.run_quel(instance.before)
            sql = contender.sql(instance)
            with contender.connection.transaction(force_rollback=True):
                contender.execute(sql)  # the session learns the relation's catalog entries
            executed = plans.explain(contender.connection, sql, execute=True, wal=True)
            scan = executed.children[0].shape() if executed.children else ""
            records = executed.properties.get("WAL Records", 0)
            rows.append((queries.label(key), scan, executed.page_accesses, records))
            if instance.before:  # its tuple is still there: the plan's own execution was undone
                contender.run(replace(instance, before=""))
    return pd.DataFrame(rows, columns=["query", "found_by", "pages", "wal_records"])


@experiment()
def miniature_pages(chapter: Chapter, tuples: int = COUNTED) -> pd.DataFrame:
    """Pages of 1024 bytes that the miniature of INGRES touches and reads.

    Read are those that its cache hasn't, which is empty before each query. Columns: query, touched,
    read, seconds_1990 (INGRES's in print).
    """
    in_print, rows = printed.table("wisconsin_figure_3_11").ingres, []
    # pages don't depend on the engine, and this one is the fastest
    with Miniature("", ingres.INLINE) as miniature:
        miniature.load(tuples)
        for key in queries.KEYS:
            touched, read_in = miniature.pages(queries.instance(BY_KEY[key], tuples))
            rows.append((queries.label(key), touched, read_in, in_print[key]))
    return pd.DataFrame(rows, columns=["query", "touched", "read", "seconds_1990"])


@experiment()
def bytes_per_tuple(chapter: Chapter) -> pd.DataFrame:
    """What a tuple takes on its page: part, bytes."""
    with PostgreSQL(chapter.server) as contender:
        contender.load(SPECIFIED)
        chapter.server.extension("pageinspect")
        [(length, header)] = contender.execute(SQL.text("relations.tuple_on_page"))
    attributes = 13 * 4 + 3 * 52
    rows = [
        ("attributes", attributes),
        ("lengths of the strings", length - header - attributes),
        ("header: versions and the like", header),
        ("line pointer", 4),
    ]
    return pd.DataFrame(rows, columns=["part", "bytes"])
