"""Experiment 3: the same query on relations of growing size, with an index and without."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations.relations import (
    LARGE,
    ONE_PROCESS,
    SMALL,
    SQL,
    explained,
    milliseconds,
    name,
    sizes,
    workers,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, plans
from pgrerun.lab.server import releases, set_session
from pgrerun.record import statistics

KEY = 99_999  # the one that the slides look up
INDEXED, NOT_INDEXED = "unique2", "unique3"
LOOKUPS = 200

LOOKUP, SCAN, SERIAL = "lookup", "scan", "scan, one process"
#: The scans, and their settings.
SCANS = {SCAN: {}, SERIAL: ONE_PROCESS}

#: At most: each reads the largest relation from disk, and once more.
RESTARTS = 7


def statement(tuples: int, attribute: str) -> str:
    """The slides' query; on a relation too small for their key, its last."""
    key = min(KEY, tuples - 1)
    return SQL.text("size_up.point_query", relation=name(tuples), attribute=attribute, key=key)


def variant(what: str, tuples: int) -> str:
    """The variant's name in the run record."""
    return f"{what}, {tuples} tuples"


# ---- plans


@experiment(claims=["expl-021", "expl-025", "expl-026"])
def plan_list(chapter: Chapter) -> pd.DataFrame:
    """The queries' plans on 100 000 and a million tuples, the largest relation and a hundredth.

    Columns: relation, tuples, attribute, plan, workers, pages. `pages` are what a lookup touches,
    after it ran before; missing for scans.
    """
    rows = []
    with chapter.server.connect() as connection:
        for attribute in (INDEXED, NOT_INDEXED):
            smallest, *_, largest = sizes(chapter)
            for tuples in sorted({smallest, SMALL, LARGE, largest}):
                query = statement(tuples, attribute)
                plan = plans.explain(connection, query)
                row = {"relation": name(tuples), "tuples": tuples, "attribute": attribute}
                row |= {"plan": plan.shape(), "workers": workers(plan, "Planned"), "pages": None}
                if attribute == INDEXED:
                    plans.explain(connection, query, execute=True)  # fills the caches of catalogs
                    again = plans.explain(connection, query, execute=True)
                    row["pages"] = again.page_accesses
                rows.append(row)
    return pd.DataFrame(rows)


@experiment(claims=["expl-034"])
def planned_workers(chapter: Chapter) -> pd.DataFrame:
    """Workers for a scan of miltup: columns max_parallel_workers, per_gather, planned, launched."""
    query = statement(LARGE, NOT_INDEXED)
    rows = []
    with chapter.server.connect() as connection:
        for most, per_gather in ((8, 2), (1, 2), (0, 2), (8, 1), (8, 0)):
            settings = {"max_parallel_workers": most, "max_parallel_workers_per_gather": per_gather}
            plan = explained(connection, query, settings, execute=True)
            rows.append((most, per_gather, workers(plan, "Planned"), workers(plan, "Launched")))
    return pd.DataFrame(rows, columns=["max_parallel_workers", "per_gather", "planned", "launched"])


# ---- time


@experiment(claims=["expl-021", "expl-023", "expl-024"])
def times(chapter: Chapter) -> None:
    """Time of a lookup by the key and of scans, in relations of every size.

    Of a lookup it is what EXPLAIN calls execution, as in print, and of a scan all that a client
    waits for. In one process only the ends and the middle are scanned.
    """
    in_one_process = sizes(chapter)[:: chapter.parameters.per_decade]
    variants = []
    with chapter.server.connect() as connection:
        for tuples in sizes(chapter):
            lookup = partial(_lookup, connection, tuples)
            variants.append(Variant(variant(LOOKUP, tuples), lookup))
            for what in SCANS:
                if what == SCAN or tuples in in_one_process:
                    scan = partial(timed_scan, connection, what, tuples)
                    variants.append(Variant(variant(what, tuples), scan))
        chapter.compare("size-up", variants, {"time": "ms"}, warmup=0)


def _lookup(connection: psycopg.Connection, tuples: int, block: Block) -> dict[str, float]:
    """Execution alone, as in print: to and fro, and planning, take longer and the same time in any
    relation. It is told by the microsecond, so that of many the middle half's mean counts.
    """
    query = statement(tuples, INDEXED)
    told = [
        plans.explain(connection, query, execute=True, buffers=False).execution_ms
        for _ in range(LOOKUPS)
    ]
    middle = sorted(told)[LOOKUPS // 4 : -LOOKUPS // 4]
    return {"time": sum(middle) / len(middle)}


def timed_scan(
    connection: psycopg.Connection, what: str, tuples: int, block: Block
) -> dict[str, float]:
    """Time one scan for one tuple, with the settings of `SCANS`."""
    return {"time": milliseconds(connection, statement(tuples, NOT_INDEXED), SCANS[what])}


# ---- planning, and the first time


@experiment(claims=["expl-027"])
def planning(chapter: Chapter) -> None:
    """Planning and execution time of a new session's first and second point query.

    In ms, by EXPLAIN ANALYZE, as in print.
    """
    releases.require(chapter.server.version, "EXPLAIN that times planning")

    def one(block: Block) -> dict[str, float]:
        found = {}
        with chapter.server.connect() as connection:
            for which in ("first", "second"):
                query = statement(SMALL, INDEXED)
                plan = plans.explain(connection, query, execute=True, buffers=False)
                found[f"{which} planning"] = plan.planning_ms
                found[f"{which} execution"] = plan.execution_ms
        return found

    metrics = ("first planning", "first execution", "second planning", "second execution")
    chapter.compare("planning", [Variant("point query", one)], dict.fromkeys(metrics, "ms"))


@experiment(claims=["expl-022", "expl-028"], needs=["restart"])
def cold(chapter: Chapter) -> None:
    """Lookups and scans right after a restart with nothing cached, and once more.

    Metrics in ms: "first lookup", "later lookup" (execution alone, by EXPLAIN, as in print), "cold
    scan, small", "warm scan, small" and the same of "large": the largest relation, and one of a
    hundredth. And "waiting": the share of the large relation's cold scan that waits for reads.
    """
    server = chapter.cluster()
    smallest, *_, largest = sizes(chapter)

    def one(block: Block) -> dict[str, float]:
        server.cold_restart()
        with server.connect() as connection:
            set_session(connection, ONE_PROCESS)
            connection.execute("SET track_io_timing = on")
            query = statement(largest, INDEXED)
            lookups = [
                plans.explain(connection, query, execute=True, buffers=False).execution_ms
                for _ in range(6)
            ]
            later = statistics.median(lookups[1:]).estimate
            found = {"first lookup": lookups[0], "later lookup": later}
            for words, tuples in (("small", smallest), ("large", largest)):
                query = statement(tuples, NOT_INDEXED)
                waited = _waited(connection)
                found[f"cold scan, {words}"] = milliseconds(connection, query, {})
                waited = _waited(connection) - waited  # the large relation's come last
                found[f"warm scan, {words}"] = milliseconds(connection, query, {})
        return found | {"waiting": waited / found["cold scan, large"]}

    scans = [f"{state} scan, {words}" for words in ("small", "large") for state in ("cold", "warm")]
    units = dict.fromkeys(["first lookup", "later lookup", *scans], "ms") | {"waiting": "share"}
    pairs = min(RESTARTS, chapter.parameters.pairs)
    chapter.compare("cold", [Variant("restarted", one)], units, pairs=pairs, warmup=0)


def _waited(connection: psycopg.Connection) -> float:
    """Milliseconds that sessions of the database have waited for reads, as told so far."""
    counters.force_flush(connection)
    return SQL.run(connection, "size_up.waited").fetchone()[0]
