"""Experiment 2: two groupings under little and ample work_mem, the plans that are picked, and the ones that aren't.

As in the slides' appendix, what is timed is CREATE TEMP TABLE ... AS, and the relation is as CREATE
and load left it: no VACUUM has marked its pages all-visible.
"""

from contextlib import contextmanager
from functools import partial

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations.relations import SMALL, UNVACUUMED, name, unset
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import plans
from pgrerun.instruments.clock import stopwatch
from pgrerun.server import set_session

WORK_MEM = ("64kB", "4MB", "30MB")  # the slides'
GRID = ("64kB", "256kB", "1MB", "2MB", "4MB", "8MB", "16MB", "30MB", "300MB")
UNIQUE, TWENTY = "unique2", "twenty"
NEW, VACUUMED, NO_INDEX = "never vacuumed", "vacuumed", "no index used"
PICKED, HASHED, ORDERED, SORTED = "picked", "hashed", "in index order", "sorted"
_NO_INDEX = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
_SETTINGS = {
    PICKED: {},
    HASHED: _NO_INDEX | {"enable_sort": "off"},
    ORDERED: {"enable_hashagg": "off", "enable_sort": "off", "enable_seqscan": "off"},
    SORTED: _NO_INDEX | {"enable_hashagg": "off"},
}
TIMED = ("expl-013", "expl-014", "expl-015", "expl-016", "expl-017", "expl-018", "expl-019")


def query(attribute: str, state: str = NEW) -> str:
    """The slides' statement on the relation in one of its states."""
    return f"SELECT {attribute}, count(*) FROM {UNVACUUMED if state == NEW else name(SMALL)} GROUP BY {attribute}"


@contextmanager
def _session(connection: psycopg.Connection, way: str, work_mem: str, more: dict[str, str] | None = None):
    settings = _SETTINGS[way] | {"work_mem": work_mem} | (more or {})
    set_session(connection, settings)
    try:
        yield connection
    finally:
        unset(connection, settings)


def _form(plan: plans.Plan) -> str:
    """The plan without the relation's name: it has two."""
    return plan.shape().replace(f"{UNVACUUMED}_pkey", "its key").replace(f"{name(SMALL)}_pkey", "its key").replace(UNVACUUMED, "").replace(name(SMALL), "").replace(" using", "").replace("  ", " ").replace(" )", ")")


def picks(chapter: Chapter) -> pd.DataFrame:
    """The plan that the planner picks for every work_mem of the grid: columns attribute, state, work_mem, plan, cost.

    `state` is NEW, VACUUMED, or NO_INDEX (new, and scans of the index switched off).
    """
    rows = []
    with chapter.server.connect() as connection:
        for attribute in (UNIQUE, TWENTY):
            for state, more in ((NEW, {}), (VACUUMED, {}), (NO_INDEX, _NO_INDEX)):
                for work_mem in GRID:
                    with _session(connection, PICKED, work_mem, more):
                        plan = plans.explain(connection, query(attribute, VACUUMED if state == VACUUMED else NEW))
                    rows.append((attribute, state, work_mem, _form(plan), plan.total_cost))
    return pd.DataFrame(rows, columns=["attribute", "state", "work_mem", "plan", "cost"])


def picked(found: pd.DataFrame, attribute: str, work_mem: str, state: str = NEW) -> str:
    """One plan of `picks`."""
    return found.set_index(["attribute", "state", "work_mem"]).at[(attribute, state, work_mem), "plan"]


def plan_table(found: pd.DataFrame | None, attribute: str = UNIQUE) -> pd.DataFrame | None:
    """`picks` for the page: a row per work_mem, a column per state."""
    if found is None:
        return None
    own = found[found["attribute"] == attribute]
    return own.pivot(index="work_mem", columns="state", values="plan").reindex(list(GRID))[[NEW, VACUUMED, NO_INDEX]].reset_index()


GROUPED, BY_HASH = "GroupAggregate(Index Only Scan its key)", "HashAggregate(Seq Scan)"


def appendix(chapter: Chapter) -> pd.DataFrame:
    """The four grouping plans of the slides' appendix beside those of today: columns statement, work_mem, then, now, heap fetches then and now."""
    printed, rows = published.table("explorations_plans"), []
    with chapter.server.connect() as connection:
        for key, attribute, work_mem in (("group_unique", UNIQUE, "4MB"), ("group_twenty", TWENTY, "4MB"), ("group_unique_30mb", UNIQUE, "30MB"), ("group_twenty_30mb", TWENTY, "30MB")):
            then = printed.loc[key]
            with _session(connection, PICKED, work_mem):
                plan = plans.explain(connection, query(attribute), execute=True)
            fetched = [node.properties["Heap Fetches"] for node in plan.walk() if "Heap Fetches" in node.properties]
            shape = f"{then['top']}({then['scan'].split(' using')[0].split(' on ')[0]})"
            rows.append((f"GROUP BY {attribute}", work_mem, shape, _form(plan), then["heap_fetches"], fetched[0] if fetched else None))
    return pd.DataFrame(rows, columns=["statement", "work_mem", "then", "now", "heap fetches then", "heap fetches now"])


def heap_fetches(chapter: Chapter) -> pd.DataFrame:
    """Heap fetches of the index-only scan before and after VACUUM: columns state, heap_fetches, pages (touched)."""
    rows = []
    with chapter.server.connect() as connection:
        for state in (NEW, VACUUMED):
            with _session(connection, ORDERED, "4MB"):
                plan = plans.explain(connection, query(UNIQUE, state), execute=True)
            [scan] = plan.find("Index Only Scan")
            rows.append((state, scan.properties["Heap Fetches"], scan.buffers["shared_hit"] + scan.buffers["shared_read"]))
    return pd.DataFrame(rows, columns=["state", "heap_fetches", "pages"])


def spills(chapter: Chapter) -> pd.DataFrame:
    """What forced hashing does with too little memory: columns work_mem, planned (partitions), batches, disk_kb, memory_kb.

    Before PostgreSQL 13 hash aggregation never left memory, and batches and disk are missing.
    """
    rows = []
    with chapter.server.connect() as connection:
        for work_mem in GRID:
            with _session(connection, HASHED, work_mem):
                top = plans.explain(connection, query(UNIQUE), execute=True).properties
            rows.append((work_mem, *(top.get(key) for key in ("Planned Partitions", "HashAgg Batches", "Disk Usage", "Peak Memory Usage"))))
    return pd.DataFrame(rows, columns=["work_mem", "planned", "batches", "disk_kb", "memory_kb"])


# ---- time


KEPT, COUNTED = "kept", "only counted"


def arm(attribute: str, way: str, work_mem: str, state: str = NEW, result: str = KEPT) -> str:
    """The arm's name in the run record."""
    return ", ".join([f"by {attribute}", way, work_mem, *([state] if state != NEW else []), *([result] if result != KEPT else [])])


IDLE = WORK_MEM[:2]
"""Settings under which the order of the index is timed; that plan needs no memory, so that the two do the same."""
ARMS = [
    *((UNIQUE, HASHED, work_mem, NEW, KEPT) for work_mem in WORK_MEM),
    *((UNIQUE, ORDERED, work_mem, NEW, KEPT) for work_mem in IDLE),
    *((TWENTY, PICKED, work_mem, NEW, KEPT) for work_mem in WORK_MEM),
    (UNIQUE, HASHED, "30MB", NEW, COUNTED),
]


def grouping(chapter: Chapter) -> None:
    """Time of every arm, and of the picked plan for the unique attribute where it is neither of the forced ones."""
    others = [(UNIQUE, PICKED, work_mem, NEW, KEPT) for work_mem, way in ways(picks(chapter)).items() if way == PICKED]
    with chapter.server.connect() as connection:
        arms = [Arm(arm(*one), partial(timed, connection, *one)) for one in ARMS + others]
        chapter.compare("grouping", arms, {"time": "ms"}, warmup=0)


def ways(found: pd.DataFrame) -> dict[str, str]:
    """For each of the slides' settings, which forced plan is the picked one for the unique attribute: HASHED, ORDERED, or PICKED if neither is."""
    plans_of = {BY_HASH: HASHED, GROUPED: ORDERED}
    return {work_mem: plans_of.get(picked(found, UNIQUE, work_mem), PICKED) for work_mem in WORK_MEM}


def of_pick(found: pd.DataFrame, work_mem: str) -> str:
    """The arm that timed the plan picked for the unique attribute."""
    return arm(UNIQUE, *_as_timed(ways(found)[work_mem], work_mem))


def _as_timed(way: str, work_mem: str) -> tuple[str, str]:
    return way, work_mem if way != ORDERED or work_mem in IDLE else IDLE[-1]


def timed(connection: psycopg.Connection, attribute: str, way: str, work_mem: str, state: str, result: str, block: Block) -> dict[str, float]:
    """Time one grouping; the arguments are those of `arm`."""
    grouped = query(attribute, state)
    statement = f"CREATE TEMP TABLE result AS {grouped}" if result == KEPT else f"SELECT count(*), sum(count) FROM ({grouped} OFFSET 0) AS result"
    connection.execute("DROP TABLE IF EXISTS result")
    with _session(connection, way, work_mem), stopwatch() as watch:
        connection.execute(statement)
    return {"time": 1000 * watch.seconds}


def ratio(chapter: Chapter, one: tuple, base: tuple) -> statistics.Interval | None:
    """Time of one arm over another's; each as (attribute, way, work_mem[, state, result])."""
    return chapter.ratio("grouping", "time", arm(*one), arm(*base))


def switched(chapter: Chapter) -> statistics.Interval | None:
    """Hashing after a sequential scan with 30 MB over the order of the index with 4 MB, as in print."""
    return ratio(chapter, (UNIQUE, HASHED, "30MB"), (UNIQUE, ORDERED, "4MB"))


def unique_over_twenty(chapter: Chapter, found: pd.DataFrame | None) -> statistics.Interval | None:
    """The picked plan for the unique attribute over that for twenty values, with the smallest work_mem."""
    return None if found is None else chapter.ratio("grouping", "time", of_pick(found, WORK_MEM[0]), arm(TWENTY, PICKED, WORK_MEM[0]))


def both_better(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, statistics.Interval] | None:
    """64 kB over 4 MB, by statement, each as the planner picks it; `found` is that of `picks`."""
    if found is None or chapter.table("grouping", "time").empty:
        return None
    less, more = WORK_MEM[:2]
    return {
        f"GROUP BY {UNIQUE}": chapter.ratio("grouping", "time", of_pick(found, less), of_pick(found, more)),
        f"GROUP BY {TWENTY}": ratio(chapter, (TWENTY, PICKED, less), (TWENTY, PICKED, more)),
    }


def flat(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The grouping by twenty with less memory over that with the most."""
    found = {work_mem: ratio(chapter, (TWENTY, PICKED, work_mem), (TWENTY, PICKED, "30MB")) for work_mem in WORK_MEM[:2]}
    return None if None in found.values() else found


def regrets(chapter: Chapter, found: pd.DataFrame | None) -> pd.DataFrame | None:
    """What the picked plan's time is over the faster forced one's, by work_mem.

    Columns: work_mem, picked (way), the times of both forced ones (ms, medians), faster (way), and the ratio with its interval, 1 where
    the picked plan is the faster one. `found` is that of `picks`.
    """
    times = chapter.table("grouping", "time")
    if found is None or times.empty:
        return None
    rows = []
    for work_mem in WORK_MEM:
        own = {way: times[arm(UNIQUE, *_as_timed(way, work_mem))] for way in (HASHED, ORDERED)}
        best = min(own, key=lambda way: own[way].median())
        regret = statistics.ratio(times[of_pick(found, work_mem)], own[best], seed=chapter.parameters.seed)
        rows.append((work_mem, ways(found)[work_mem], *(own[way].median() for way in own), best, regret.estimate, regret.low, regret.high))
    return pd.DataFrame(rows, columns=["work_mem", "picked", *(f"{way} (ms)" for way in (HASHED, ORDERED)), "faster", "picked / faster", "low", "high"])


REGRET = 1.05  # a plan that is slower than another by less isn't the wrong one


def optimal_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the picked plan is the faster one, where the result exceeds work_mem."""
    if found is None:
        return None
    return {f"with {row.work_mem} no other plan is surely faster": row.low <= REGRET for row in found[found["work_mem"] != "30MB"].itertuples()}


def unfit_facts(plans_found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether hash aggregation is left where the hash table doesn't fit: as in print, and without the index as an alternative."""
    if plans_found is None:
        return None
    smallest, default = WORK_MEM[:2]
    return {
        f"with {smallest} the planner picks another plan": not picked(plans_found, UNIQUE, smallest).startswith("HashAggregate"),
        f"with {default}, too": not picked(plans_found, UNIQUE, default).startswith("HashAggregate"),
        f"with {smallest} also where no index gives the order": not picked(plans_found, UNIQUE, smallest, NO_INDEX).startswith("HashAggregate"),
    }


def order_facts(plans_found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether groups come in the order of the index at the slides' two smaller settings."""
    if plans_found is None:
        return None
    return {f"with {work_mem}: {GROUPED}": picked(plans_found, UNIQUE, work_mem) == GROUPED for work_mem in WORK_MEM[:2]}
