"""Experiment 3: the same query on relations of growing size, with an index and without."""

import re
from functools import partial

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations.relations import KEY, LARGE, SMALL, name, sizes, unset
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import pgbench, plans
from pgrerun.instruments.clock import stopwatch
from pgrerun.published.explorations import heap_pages, megabytes
from pgrerun.server import set_session

LOOKUP, SCAN, SERIAL = "lookup", "scan", "scan, one process"
SCALING = ("expl-021", "expl-022", "expl-023", "expl-024")
COLD = ("expl-028",)
ONE_PROCESS = {"max_parallel_workers_per_gather": 0}


def statement(tuples: int, attribute: str) -> str:
    """The slides' query; on a relation too small for their key, its last."""
    return f"SELECT * FROM {name(tuples)} WHERE {attribute} = {min(KEY, tuples - 1)}"


def arm(what: str, tuples: int) -> str:
    """The arm's name in the run record."""
    return f"{what}, {tuples} tuples"


def sizeup(chapter: Chapter) -> None:
    """Time of a lookup by the key, and of a scan as the planner likes it and in one process, in relations of every size (in one process: the ends and the middle)."""
    with chapter.server.connect() as connection:
        arms = [
            Arm(arm(what, tuples), partial(measure, tuples))
            for tuples in sizes(chapter)
            for what, measure in (
                (LOOKUP, partial(_lookup, chapter)), (SCAN, partial(scanned, connection, {})), (SERIAL, partial(scanned, connection, ONE_PROCESS)),
            ) if what != SERIAL or tuples in sizes(chapter)[:: chapter.parameters.per_decade]
        ]  # fmt: skip
        chapter.compare("size-up", arms, {"time": "ms"}, warmup=0)


def _lookup(chapter: Chapter, tuples: int, block: Block) -> dict[str, float]:
    done = pgbench.run(chapter.server, f"{statement(tuples, 'unique2')};\n", transactions=LOOKUPS, seed=block.seed)
    return {"time": 1000 / done.tps}


LOOKUPS = 300


def scanned(connection: psycopg.Connection, settings: dict, tuples: int, block: Block) -> dict[str, float]:
    """Time one scan for one tuple, under these settings."""
    set_session(connection, settings)
    with stopwatch() as watch:
        connection.execute(statement(tuples, "unique3")).fetchall()
    unset(connection, settings)
    return {"time": 1000 * watch.seconds}


def growth(chapter: Chapter, what: str) -> statistics.Interval | None:
    """Time on the largest relation over that on one of a hundredth."""
    smallest, *_, largest = sizes(chapter)
    return chapter.ratio("size-up", "time", arm(what, largest), arm(what, smallest))


def exponent(chapter: Chapter, what: str) -> statistics.Interval | None:
    """p of time ~ tuples^p over the sizes, every repetition a point."""
    times = chapter.table("size-up", "time")
    if times.empty:
        return None
    points = [(tuples, value) for tuples in sizes(chapter) if arm(what, tuples) in times for value in times[arm(what, tuples)]]
    return statistics.exponent(*zip(*points))


def close_facts(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a sequential scan takes about as long on much data as on little."""
    grown = exponent(chapter, SCAN)
    if grown is None or found is None:
        return None
    scans = found[found["attribute"] == "unique3"]["plan"]
    return {
        "both queries scan sequentially": bool(scans.str.contains("Seq Scan").all()),
        "their time grows with less than the square root of the size": grown.high < 0.5,
    }


# ---- plans


def plan_list(chapter: Chapter) -> pd.DataFrame:
    """The four queries' plans on 100 000 tuples and on the largest relation: columns relation, tuples, attribute, plan, workers, pages.

    `pages` are what a lookup touches, after it ran before; None for scans.
    """
    rows = []
    with chapter.server.connect() as connection:
        for attribute in ("unique2", "unique3"):
            for tuples in dict.fromkeys((SMALL, LARGE, chapter.parameters.largest)):
                plan = plans.explain(connection, statement(tuples, attribute))
                workers = [node.properties["Workers Planned"] for node in plan.walk() if "Workers Planned" in node.properties]
                rows.append((name(tuples), tuples, attribute, plan.shape(), workers[0] if workers else 0, _touched(connection, tuples) if attribute == "unique2" else None))
    return pd.DataFrame(rows, columns=["relation", "tuples", "attribute", "plan", "workers", "pages"])


def _touched(connection: psycopg.Connection, tuples: int) -> int:
    for _ in range(2):  # the first fills the caches of catalogs
        buffers = plans.explain(connection, statement(tuples, "unique2"), execute=True).buffers
    return buffers["shared_hit"] + buffers["shared_read"]


def appendix(chapter: Chapter, found: pd.DataFrame | None) -> pd.DataFrame | None:
    """The appendix's four plans of point queries and scans beside today's: columns statement, then, workers then, now, workers now; `found` is that of `plan_list`.

    Where the print has its largest relation there stands the largest one here.
    """
    if found is None:
        return None
    printed, rows = published.table("explorations_plans"), []
    today = found.set_index(["attribute", "tuples"])
    for key, attribute, tuples in (
        ("point_small", "unique2", SMALL), ("point_large", "unique2", chapter.parameters.largest), ("scan_small", "unique3", SMALL), ("scan_large", "unique3", chapter.parameters.largest),
    ):  # fmt: skip
        then, now = printed.loc[key], today.loc[(attribute, tuples)]
        scan = re.sub(r" using (\w+)[ _](pkey) on (\w+)", r" \3 using \1_\2", then["scan"]).replace(" on ", " ")  # an underscore got lost in print
        shape = scan if then["top"] in scan else f"{then['top']}({scan})"
        rows.append((f"WHERE {attribute} = …", shape, 0 if pd.isna(then["workers"]) else int(then["workers"]), now["plan"], now["workers"]))
    return pd.DataFrame(rows, columns=["statement", "then", "workers then", "now", "workers now"])


def plan_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether indexed queries use the index and the others don't."""
    if found is None:
        return None
    by_index = found["plan"].str.startswith("Index Scan")
    return {f"{row.relation}, {row.attribute}: {'an index scan' if row.attribute == 'unique2' else 'another scan'}": bool(used == (row.attribute == "unique2")) for row, used in zip(found.itertuples(), by_index)}


def worker_facts(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether two workers are planned for the largest relation's scan and none for that of 100 000 tuples."""
    if found is None:
        return None
    planned = found[found["attribute"] == "unique3"].set_index("tuples")["workers"]
    wanted = published.cell("explorations_plans", "scan_large", "workers")
    return {"two workers for the largest relation": bool(planned[chapter.parameters.largest] == wanted), "none for 100 000 tuples": bool(planned[SMALL] == 0)}


def workers_by_size(chapter: Chapter) -> pd.DataFrame:
    """Workers planned for a scan, by size, as by default and with as many allowed as the size warrants: columns relation, pages, workers, unlimited."""
    rows = []
    with chapter.server.connect() as connection:
        for tuples in sizes(chapter):
            found = []
            for settings in ({}, {"max_parallel_workers_per_gather": 64}):
                set_session(connection, settings)
                plan = plans.explain(connection, statement(tuples, "unique3"))
                unset(connection, settings)
                found.append(max((node.properties.get("Workers Planned", 0) for node in plan.walk()), default=0))
            rows.append((name(tuples), heap_pages(tuples), *found))
    return pd.DataFrame(rows, columns=["relation", "pages", "workers", "unlimited"])


# ---- planning, and the first time


def planning(chapter: Chapter) -> None:
    """Planning and execution time (ms, by EXPLAIN ANALYZE, as in print) of a new session's first and second point query."""

    def one(block: Block) -> dict[str, float]:
        with chapter.server.connect() as connection:
            found = {}
            for which in ("first", "second"):
                text = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) {statement(SMALL, 'unique2')}"
                [[[top]]] = connection.execute(text).fetchall()
                found |= {f"{which} planning": top["Planning Time"], f"{which} execution": top["Execution Time"]}
        return found

    units = {f"{which} {what}": "ms" for which in ("first", "second") for what in ("planning", "execution")}
    chapter.compare("planning", [Arm("point query", one)], units)


def planning_over_execution(chapter: Chapter, which: str = "first") -> statistics.Interval | None:
    """Planning time over execution time of a session's first or second query."""
    planned, executed = (chapter.table("planning", f"{which} {what}") for what in ("planning", "execution"))
    return None if planned.empty else statistics.ratio(planned["point query"], executed["point query"], seed=chapter.parameters.seed)


RESTARTS = 7
"""At most: each reads the largest relation from disk, and once more."""
COLD_UNITS = {"first lookup": "ms", "later lookup": "ms", "cold scan, small": "ms", "warm scan, small": "ms", "cold scan, large": "ms", "warm scan, large": "ms"}


def cold(chapter: Chapter) -> None:
    """Lookups and scans right after a restart with nothing cached, and once more: the largest relation and one of a hundredth."""
    cluster = chapter.cluster()
    smallest, *_, largest = sizes(chapter)

    def one(block: Block) -> dict[str, float]:
        cluster.cold_restart()
        with cluster.connect() as connection:
            connection.execute("SET max_parallel_workers_per_gather = 0")
            lookups = [_timed(connection, statement(largest, "unique2")) for _ in range(6)]
            found = {"first lookup": lookups[0], "later lookup": statistics.median(lookups[1:]).estimate}
            for words, tuples in (("small", smallest), ("large", largest)):
                found[f"cold scan, {words}"] = _timed(connection, statement(tuples, "unique3"))
                found[f"warm scan, {words}"] = _timed(connection, statement(tuples, "unique3"))
        return found

    chapter.compare("cold", [Arm("restarted", one)], COLD_UNITS, pairs=min(RESTARTS, chapter.parameters.pairs), warmup=0)


def _timed(connection: psycopg.Connection, text: str) -> float:
    with stopwatch() as watch:
        connection.execute(text).fetchall()
    return 1000 * watch.seconds


def within(chapter: Chapter, metric: str, base: str) -> statistics.Interval | None:
    """One metric of `cold` over another."""
    one, other = (chapter.table("cold", m) for m in (metric, base))
    return None if one.empty else statistics.ratio(one["restarted"], other["restarted"], seed=chapter.parameters.seed)


def rates(chapter: Chapter) -> pd.DataFrame | None:
    """MB/s of scans: columns what, small, large; printed, cold and warm."""
    if chapter.table("cold", "first lookup").empty:
        return None
    smallest, *_, largest = sizes(chapter)
    printed = published.table("explorations_sizeup_averages").loc["average"]
    rows = [("in print", *(1000 * megabytes(heap_pages(tuples)) / printed[q] for q, tuples in (("q3", 100_000), ("q4", 10_000_000))))]
    for state in ("cold", "warm"):
        rows.append((f"here, {state}", *(1000 * megabytes(heap_pages(tuples)) / chapter.median("cold", f"{state} scan, {words}", "restarted").estimate for words, tuples in (("small", smallest), ("large", largest)))))
    return pd.DataFrame(rows, columns=["what", "small relation (MB/s)", "a hundred times as large (MB/s)"])
