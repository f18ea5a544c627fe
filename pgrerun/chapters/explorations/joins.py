"""Experiment 4: can work_mem make the planner leave the hash join?

The plans of a grid, what each way of joining would cost, what it takes, and what memory does to a
hash join that the planner doesn't leave. As in the slides, parallel hash is off unless said otherwise.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations.relations import LARGE, SMALL, THIRD, name, sizes, unset
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import plans
from pgrerun.instruments.clock import stopwatch
from pgrerun.server import set_session

GRID = ("64kB", "256kB", "1MB", "4MB", "16MB", "30MB", "100MB", "300MB")
_AS_PRINTED = {"enable_parallel_hash": "off"}
HASH, MERGE, LOOP = "Hash Join", "Merge Join", "Nested Loop"
_ONLY = {
    HASH: {"enable_mergejoin": "off", "enable_nestloop": "off"},
    MERGE: {"enable_hashjoin": "off", "enable_nestloop": "off"},
    LOOP: {"enable_hashjoin": "off", "enable_mergejoin": "off"},
}
# (attribute of the smaller relation, attribute of the larger): neither, both, or one has an index.
PAIRS = (("unique1", "unique1"), ("unique2", "unique2"), ("unique2", "unique1"), ("unique1", "unique2"))
MULTIPLIERS = (1, 2, 8)


def join(small: int, large: int, attributes: tuple[str, str], selected: str = "*") -> str:
    """The slides' join of two relations, by their sizes."""
    return f"SELECT {selected} FROM {name(small)} T1 JOIN {name(large)} T2 ON T1.{attributes[0]} = T2.{attributes[1]}"


def kind(plan: plans.Plan) -> str:
    """The topmost join's kind."""
    return next(node.node_type for node in plan.walk() if node.node_type in _ONLY)


def _explained(connection: psycopg.Connection, text: str, settings: dict, **more) -> plans.Plan:
    set_session(connection, settings)
    try:
        return plans.explain(connection, text, **more)
    finally:
        unset(connection, settings)


def grid(chapter: Chapter) -> pd.DataFrame:
    """The join that is picked, and the costs of both joins, over sizes, attributes, work_mem and hash_mem_multiplier.

    Columns: small, large (tuples), attributes, multiplier, work_mem, picked, and "Hash Join" and "Merge Join" (costs).
    """
    return _planned(chapter, [(small, large, attributes) for small, large in _sizes(chapter) for attributes in PAIRS], GRID)


def _planned(chapter: Chapter, joined: list[tuple[int, int, tuple[str, str]]], settings: Sequence[str]) -> pd.DataFrame:
    """The columns of `grid` for some joins and settings of work_mem."""
    rows = []
    with chapter.server.connect() as connection:
        known = connection.execute("SELECT count(*) FROM pg_settings WHERE name = 'hash_mem_multiplier'").fetchone()[0]
        for (small, large, attributes), multiplier, work_mem in product(joined, MULTIPLIERS if known else (1,), settings):
            own = _AS_PRINTED | {"work_mem": work_mem} | ({"hash_mem_multiplier": multiplier} if known else {})
            text = join(small, large, attributes)
            picked = kind(_explained(connection, text, own))
            costs = [_explained(connection, text, own | _ONLY[one]).total_cost for one in (HASH, MERGE)]
            rows.append((small, large, " = ".join(attributes), multiplier, work_mem, picked, *costs))
    return pd.DataFrame(rows, columns=["small", "large", "attributes", "multiplier", "work_mem", "picked", HASH, MERGE])


def multiplied(chapter: Chapter, found: pd.DataFrame) -> pd.DataFrame | None:
    """The columns of `grid` over a finer work_mem, for the join whose pick depends most often on memory; else for the slides' own.

    None where there is no hash_mem_multiplier.
    """
    if found["multiplier"].nunique() == 1:
        return None
    changed = flips(found)
    if changed.empty:
        chosen = (SMALL, LARGE, PAIRS[0])
    else:
        small, large, attributes = changed[["small", "large", "attributes"]].value_counts(sort=True).index[0]
        chosen = (small, large, tuple(attributes.split(" = ")))
    return _planned(chapter, [chosen], FINE)


FINE = tuple(f"{2**power}kB" if power < 10 else f"{2 ** (power - 10)}MB" for power in range(6, 19))
"""64 kB to 256 MB, doubling."""


def _sizes(chapter: Chapter) -> list[tuple[int, int]]:
    """Smaller and larger: the slides' pair, and each of the size-up's relations with one of theirs."""
    others = [(tuples, LARGE) for tuples in sizes(chapter)]
    return list(dict.fromkeys((min(pair), max(pair)) for pair in ((SMALL, LARGE), (THIRD, SMALL), *others) if pair[0] != pair[1]))


def printed_range(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of the grid that the slides tried: their relations, join attribute and settings."""
    multiplier = 1 if 1 in set(found["multiplier"]) else found["multiplier"].min()  # what 11 did
    return found[(found["small"] == SMALL) & (found["large"] == LARGE) & (found["attributes"] == "unique1 = unique1") & (found["multiplier"] == multiplier)]


def flips(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """Where work_mem alone changes the picked join: columns small, large, attributes, multiplier, and the joins in the order of growing work_mem."""
    if found is None:
        return None
    rows = []
    for key, group in found.groupby(["small", "large", "attributes", "multiplier"], sort=False):
        if group["picked"].nunique() > 1:
            rows.append((*key, over_memory(group)))
    return pd.DataFrame(rows, columns=["small", "large", "attributes", "multiplier", "picked"])


def over_memory(found: pd.DataFrame) -> str:
    """The picked joins in the order of growing work_mem, each from where on it is picked."""
    changes = found[found["picked"] != found["picked"].shift()]
    return "; ".join(f"{row.picked} from {row.work_mem}" for row in changes.itertuples())


def preferred_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a hash join is picked with default settings, for the slides' pair and for others of a small and a larger relation."""
    if found is None:
        return None
    default = found[(found["work_mem"] == "4MB") & (found["attributes"] == "unique1 = unique1") & (found["small"] < found["large"])]
    return {f"{name(small)} with {name(large)}: {HASH}": bool((group["picked"] == HASH).all()) for (small, large), group in default.groupby(["small", "large"])}


def merge_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a merge join is picked below the smaller relation's size and above the larger one's."""
    if found is None:
        return None
    own = printed_range(found).set_index("work_mem")["picked"]
    return {
        "with less than the smaller relation: a merge join": bool((own[["64kB", "256kB", "1MB", "4MB", "16MB"]] == MERGE).any()),
        "with more than the larger relation: a merge join": bool(own["300MB"] == MERGE),
    }


def ignored_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether work_mem is without influence: on the pick in print's range, on the pick elsewhere, on the costs."""
    if found is None:
        return None
    own = printed_range(found)
    return {
        "over the print's range the same join is picked": own["picked"].nunique() == 1,
        "on other sizes and attributes, too": flips(found).empty,
        "the hash join's cost is the same whatever the memory": own[HASH].nunique() == 1,
    }


def considered_facts(found: pd.DataFrame | None, grouping: dict[str, set]) -> dict[str, bool] | None:
    """Whether the planner ignores configured memory altogether; `grouping` has the plans of each grouping over work_mem."""
    if found is None:
        return None
    own = printed_range(found)
    return {
        "the join is the same whatever the memory": own["picked"].nunique() == 1,
        "so is the grouping by unique2": len(grouping["unique2"]) == 1,
        "so are the costs of the join": own[HASH].nunique() == own[MERGE].nunique() == 1,
    }


def clustered_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a merge join is picked on the clustered index: for the slides' relations at every work_mem, and for all other sizes of the grid."""
    if found is None:
        return None
    clustered = found[found["attributes"] == "unique2 = unique2"]
    printed = (clustered["small"] == SMALL) & (clustered["large"] == LARGE)
    facts = {f"with {work_mem}: {MERGE}": bool((group["picked"] == MERGE).all()) for work_mem, group in clustered[printed].groupby("work_mem", sort=False)}
    return facts | {f"{name(small)} with {name(large)}, with any: {MERGE}": bool((group["picked"] == MERGE).all()) for (small, large), group in clustered[~printed].groupby(["small", "large"])}


# ---- batches, workers


BATCHED = ("256kB", "1MB", "2MB", "4MB", "8MB")


def batches(chapter: Chapter) -> pd.DataFrame:
    """A relation joined with itself, run: columns work_mem, parallel_hash, workers, batches, memory_kb, temp_written (pages).

    Without parallel hash every process builds a table of its own; with it they share one, and may use the memory of all.
    """
    rows = []
    eager = {"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, "enable_mergejoin": "off", "enable_nestloop": "off"}
    with chapter.server.connect() as connection:
        for work_mem in BATCHED:
            for parallel in ("off", "on"):
                settings = {"work_mem": work_mem, "enable_parallel_hash": parallel} | (eager if parallel == "on" else eager | {"max_parallel_workers_per_gather": 0})
                plan = _explained(connection, join(THIRD, THIRD, PAIRS[0], "count(T1), count(T2)"), settings, execute=True)
                [hashed] = plan.find("Hash")
                launched = max((node.properties.get("Workers Launched", 0) for node in plan.walk()), default=0)
                rows.append((work_mem, parallel, launched, hashed.properties["Hash Batches"], hashed.properties["Peak Memory Usage"], plan.buffers["temp_written"]))
    return pd.DataFrame(rows, columns=["work_mem", "parallel_hash", "workers", "batches", "memory_kb", "temp_written"])


def parallel_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether parallel hash gets by with fewer batches for the same work_mem."""
    if found is None:
        return None
    wide = found.pivot(index="work_mem", columns="parallel_hash", values="batches")
    short = wide[wide["off"] > 1]
    return {f"with {work_mem}: fewer batches": bool(row["on"] < row["off"]) for work_mem, row in short.iterrows()} or {"one process needs several batches somewhere": False}


def workers(chapter: Chapter) -> pd.DataFrame:
    """Workers planned and launched for a scan of miltup: columns max_parallel_workers, per_gather, planned, launched."""
    rows = []
    with chapter.server.connect() as connection:
        for most, per_gather in ((8, 2), (1, 2), (0, 2), (8, 1), (8, 0)):
            settings = {"max_parallel_workers": most, "max_parallel_workers_per_gather": per_gather}
            plan = _explained(connection, f"SELECT * FROM {name(LARGE)} WHERE unique3 = 99999", settings, execute=True)
            gather = [node.properties for node in plan.walk() if "Workers Planned" in node.properties]
            rows.append((most, per_gather, gather[0]["Workers Planned"] if gather else 0, gather[0]["Workers Launched"] if gather else 0))
    return pd.DataFrame(rows, columns=["max_parallel_workers", "per_gather", "planned", "launched"])


def worker_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the planner plans with workers that aren't there, and with none that it may not ask for."""
    if found is None:
        return None
    by = found.set_index(["max_parallel_workers", "per_gather"])
    return {
        "with one worker for the whole server two are planned": bool(by.at[(1, 2), "planned"] == 2),
        "of which one is launched": bool(by.at[(1, 2), "launched"] == 1),
        "with one worker for each Gather two are planned, too": bool(by.at[(8, 1), "planned"] == 2),
    }


# ---- time


WORK_MEM = ("64kB", "30MB")
"""Too little for either join, and ample."""


def arm(how: str, work_mem: str) -> str:
    """The arm's name in the run record."""
    return f"{how}, {work_mem}"


def timed_pair(chapter: Chapter) -> tuple[int, int]:
    """Sizes of the relations whose joins are timed: one about three times the other, where both joins cost about the same."""
    smallest = sizes(chapter)[0]
    return min(THIRD, smallest), max(THIRD, smallest)


def timing(chapter: Chapter) -> None:
    """Time of the hash join and of the merge join of two relations, without parallel workers."""
    small, large = timed_pair(chapter)
    with chapter.server.connect() as connection:
        arms = [Arm(arm(how, work_mem), partial(timed, connection, small, large, how, work_mem)) for how in (HASH, MERGE) for work_mem in WORK_MEM]
        chapter.compare("joins", arms, {"time": "ms"}, warmup=0)


def timed(connection: psycopg.Connection, small: int, large: int, how: str, work_mem: str, block: Block) -> dict[str, float]:
    """Time one join of two relations by their sizes, in one process."""
    settings = _ONLY[how] | {"work_mem": work_mem, "max_parallel_workers_per_gather": 0}
    set_session(connection, settings)
    with stopwatch() as watch:
        connection.execute(join(small, large, PAIRS[0], "count(T1), count(T2)")).fetchone()
    unset(connection, settings)
    return {"time": 1000 * watch.seconds}


def merge_over_hash(chapter: Chapter, work_mem: str) -> statistics.Interval | None:
    """Time of the merge join over that of the hash join."""
    return chapter.ratio("joins", "time", arm(MERGE, work_mem), arm(HASH, work_mem))
