"""What a query touches and how it is run: plans, pages, forced scans, and what versions cost a scan."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import race
from pgrerun.chapters.wisconsin.contenders import CONFINED, DUCKDB, NESTED_LOOPS, POSTGRESQL, DuckDB, PostgreSQL
from pgrerun.chapters.wisconsin.miniature import Miniature
from pgrerun.chapters.wisconsin.queries import BY_KEY, KEYS, QUERIES, SPECIFIED, printed_form, variant
from pgrerun.errors import RerunError
from pgrerun.experiment import Arm, Block
from pgrerun.ingres import INLINE
from pgrerun.instruments import clock, plans
from pgrerun.quel import Translator, read
from pgrerun.relations import Wisconsin

SEQUENTIAL, PLAIN, BITMAP = "sequential scan", "plain index scan", "bitmap scan"
_SCANS = {SEQUENTIAL: "enable_seqscan", PLAIN: "enable_indexscan", BITMAP: "enable_bitmapscan"}
# each scan switched on by name: a reader's server may have it off
_FORCED = {name: {setting: "on" if setting == wanted else "off" for setting in _SCANS.values()} for name, wanted in _SCANS.items()}
JOINS = tuple(f"q{number}" for number in range(9, 18))
WITHOUT_INDEX = JOINS[:3]


def answers(chapter: Chapter) -> pd.DataFrame:
    """Every query as specified, run by PostgreSQL and DuckDB: query, postquel, tuples, checksum.

    RerunError if the two disagree.
    """
    rows = []
    with ExitStack() as both:
        contenders = [both.enter_context(PostgreSQL(chapter.server)), both.enter_context(DuckDB())]
        for contender in contenders:
            contender.load(SPECIFIED)
        for query in QUERIES:
            one, found = variant(query, SPECIFIED), []
            for contender in contenders:
                contender.run(one)
                found.append(contender.answer(one))
                contender.tidy(one)
            if found[0] != found[1]:
                raise RerunError(f"Query {query.key} is answered differently: by {POSTGRESQL} with {found[0]}, by {DUCKDB} with {found[1]} (tuples, checksum).")
            rows.append((race.label(query.key), printed_form(query.key), *found[0]))
    return pd.DataFrame(rows, columns=["query", "postquel", "tuples", "checksum"])


def chosen(chapter: Chapter) -> pd.DataFrame:
    """The plans at the report's size: query, as_it_chooses, nested_loops_only (empty where it is the same)."""
    server, rows = chapter.server, []
    with PostgreSQL(server) as free, PostgreSQL(server, CONFINED, NESTED_LOOPS) as confined:
        free.load(SPECIFIED)
        for key in KEYS:
            shapes = [_shape(contender, key) for contender in (free, confined)]
            rows.append((race.label(key), shapes[0], shapes[1] if shapes[1] != shapes[0] else ""))
    return pd.DataFrame(rows, columns=["query", "as_it_chooses", "nested_loops_only"])


def _shape(contender: PostgreSQL, key: str) -> str:
    return plans.explain(contender.connection, contender.sql(variant(BY_KEY[key], SPECIFIED))).shape()


def other_plans(found: pd.DataFrame | None) -> list[str] | None:
    """Keys of the queries for which confinement changes the plan."""
    return None if found is None else [f"q{label.split(':')[0]}" for label in found.loc[found["nested_loops_only"] != "", "query"]]


def pairs_compared(chapter: Chapter) -> pd.DataFrame:
    """How many pairs of tuples a nested loop looked at and found not to match: query, rejected, joined.

    At the report's size, without an index and with a clustered one.
    """
    rows = []
    with PostgreSQL(chapter.server, CONFINED, NESTED_LOOPS) as confined:
        confined.load(SPECIFIED)
        for key in ("q9", "q11", "q12", "q14"):  # a restricted relation is its first tenth, so that joinABprime counts as joinAselB
            plan = plans.explain(confined.connection, confined.sql(variant(BY_KEY[key], SPECIFIED)), execute=True)
            rejected = sum(int(node.properties.get("Rows Removed by Join Filter", 0) * (node.loops or 0)) for node in plan.walk())
            rows.append((race.label(key), rejected, int(plan.rows_actual)))
    return pd.DataFrame(rows, columns=["query", "rejected", "joined"])


def touched(chapter: Chapter) -> pd.DataFrame:
    """Pages that the selections touch at the report's size: query, scan, pages (of heap and index together), tuples."""
    rows = []
    with PostgreSQL(chapter.server) as contender:
        contender.load(SPECIFIED)
        for key in ("q1", "q2", "q3", "q4", "q5", "q6"):
            statement = variant(BY_KEY[key], SPECIFIED).text.replace("into tmp ", "")
            rows.append((race.label(key), *_pages(contender, statement)))
        for name, settings in _FORCED.items():
            with PostgreSQL(chapter.server, name, settings) as forced:
                rows.append((f"{race.label('q6')}, {name}", *_pages(forced, variant(BY_KEY["q6"], SPECIFIED).text.replace("into tmp ", ""))))
    return pd.DataFrame(rows, columns=["query", "scan", "pages", "tuples"])


COUNTED = SPECIFIED // 10  # tuples of the large relations where the miniature's pages are counted


def miniature_pages(chapter: Chapter) -> pd.DataFrame:
    """Pages of 1024 bytes that the miniature of INGRES touches and reads, beside INGRES's printed seconds: query, touched, read, seconds_1990.

    Read are those that its cache hasn't, which is empty before each query.
    """
    rows = []
    with Miniature("", INLINE) as contender:  # pages don't depend on the engine, and this one is the fastest
        contender.load(COUNTED)
        for key in KEYS:
            rows.append((race.label(key), *contender.pages(variant(BY_KEY[key], COUNTED))))
    printed = published.table("wisconsin_figure_3_11").ingres
    return pd.DataFrame(rows, columns=["query", "touched", "read"]).assign(seconds_1990=[printed[key] for key in KEYS])


def _pages(contender: PostgreSQL, text: str) -> tuple[str, int, int]:
    plan = plans.explain(contender.connection, Translator().sql(read(text)[0]), execute=True)
    return plan.node_type, plan.buffers["shared_hit"] + plan.buffers["shared_read"], int(plan.rows_actual)


# ---- the three ways to a tenth of a relation

FORCED = "forced scans"


def forced(chapter: Chapter) -> None:
    """Queries 5 and 6 by each scan in turn, at the largest size."""
    contenders = [PostgreSQL(chapter.server, name, settings) for name, settings in _FORCED.items()]
    race.race(chapter, FORCED, race.sizes(chapter)[-1], contenders, [BY_KEY["q5"], BY_KEY["q6"]], warmup=1)


def forced_over_scan(chapter: Chapter, name: str, key: str) -> statistics.Interval | None:
    """Time of a selection by one scan over that of the sequential scan."""
    return chapter.ratio(FORCED, key, name, SEQUENTIAL)


def tenth_by_index(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """A tenth of the relation by an index that isn't clustered, over a full scan: as in 1990, and as the planner chooses."""
    plain, own = forced_over_scan(chapter, PLAIN, "q6"), race.within(chapter, ["q6"], ["q2"])
    return None if None in (plain, own) else {PLAIN: plain, "as PostgreSQL chooses": own}


# ---- versions that nobody asked for

VERSIONS = "a scan with and without versions to check"
SEEN, CHECKED = "all visible", "versions to check"
_NAMES = {SEEN: "seen", CHECKED: "checked"}


def versions(chapter: Chapter) -> None:
    """Scan a relation whose pages say that all tuples are visible to all, and one whose pages don't.

    The second had one tuple of each page deleted by a transaction that was rolled back: its
    tuples are the same and all visible, but each has to be looked at to know.
    """
    n = race.sizes(chapter)[1]
    with chapter.server.connect() as connection:
        for kind, name in _NAMES.items():
            Wisconsin(name, n).load(connection, vacuum=False)
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")
            if kind == CHECKED:
                per_page = n // connection.execute(f"SELECT pg_relation_size('{name}') / 8192").fetchone()[0]
                with connection.transaction(force_rollback=True):
                    connection.execute(f"DELETE FROM {name} WHERE unique2 % {per_page} = 0")
        arms = [Arm(kind, partial(_scan, connection, name)) for kind, name in _NAMES.items()]
        chapter.compare(VERSIONS, arms, {"seconds": "s"}, pairs=4 * chapter.parameters.pairs)
        for name in _NAMES.values():
            connection.execute(f"DROP TABLE {name}")


def _scan(connection, name: str, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        connection.execute(f"SELECT count(*) FROM {name} WHERE unique2 < 0")
    return {"seconds": watch.seconds}


def price_of_versions(chapter: Chapter) -> statistics.Interval | None:
    """Time of a scan that has to check versions over that of one that hasn't."""
    return chapter.ratio(VERSIONS, "seconds", CHECKED, SEEN)


def bytes_per_tuple(chapter: Chapter) -> pd.DataFrame:
    """What a tuple takes on its page: part, bytes."""
    with PostgreSQL(chapter.server) as contender:
        contender.load(SPECIFIED)
        chapter.server.extension("pageinspect")
        [(length, header)] = contender.execute(
            "SELECT max(lp_len), max(t_hoff) FROM heap_page_items(get_raw_page('tenk1', 0))"
        )
    attributes = 13 * 4 + 3 * 52
    rows = [("attributes", attributes), ("lengths of the strings", length - header - attributes), ("header: versions and the like", header), ("line pointer", 4)]
    return pd.DataFrame(rows, columns=["part", "bytes"])


# ---- what a change writes


def changes(chapter: Chapter) -> pd.DataFrame:
    """Pages touched and log records of the single-tuple queries, at the report's size: query, scan, pages, log_records."""
    rows = []
    with PostgreSQL(chapter.server) as contender:
        contender.load(SPECIFIED)
        for key in ("q26", "q29", "q27", "q30", "q28", "q31", "q32", "plain"):
            one = variant(BY_KEY[key], SPECIFIED)
            contender.run_quel(one.before)
            plan = plans.explain(contender.connection, contender.sql(one), execute=True, wal=True)
            below = plan.children[0].shape() if plan.children else ""
            rows.append((race.label(key), below, plan.buffers["shared_hit"] + plan.buffers["shared_read"], plan.properties.get("WAL Records", 0)))
            if one.before:  # what was inserted for it: the plan's own execution was rolled back
                contender.run(replace(one, before=""))
    return pd.DataFrame(rows, columns=["query", "found by", "pages", "log_records"])
