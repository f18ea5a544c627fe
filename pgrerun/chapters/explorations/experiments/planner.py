"""Experiments 2 and 4: which grouping and which join the planner picks as work_mem grows.

Two groupings under little and ample work_mem, as picked and with plans forced. As in the slides'
appendix, what is timed is CREATE TEMP TABLE ... AS, and the relation is as CREATE and load left it:
no VACUUM has marked its pages all-visible. And joins: the plans of a grid, what each way of joining
would cost, and what memory does to a hash join that the planner doesn't leave. As in the slides,
parallel hash is off unless said otherwise.
"""

import re
from dataclasses import dataclass
from functools import partial
from itertools import product

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.relations import (
    LARGE,
    NEVER_VACUUMED,
    SMALL,
    SQL,
    THIRD,
    explained,
    milliseconds,
    name,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import releases

WORK_MEM = ("64kB", "4MB", "30MB")  # the slides'
GRID = ("64kB", "256kB", "1MB", "2MB", "4MB", "8MB", "16MB", "30MB", "300MB")
UNIQUE, TWENTY = "unique2", "twenty"
GROUPED, BY_HASH = "GroupAggregate(Index Only Scan its key)", "HashAggregate(Seq Scan)"

# The plan that is timed, and the settings that leave the planner no other one.
PICKED, HASHED, ORDERED = "picked", "hashed", "in index order"
_NO_INDEX = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
FORCED = {
    PICKED: {},
    HASHED: _NO_INDEX | {"enable_sort": "off"},
    ORDERED: {"enable_hashagg": "off", "enable_sort": "off", "enable_seqscan": "off"},
}
# The relation that is grouped, and settings.
NEW, VACUUMED, NO_INDEX = "never vacuumed", "vacuumed", "no index used"
STATES = {
    NEW: (NEVER_VACUUMED, {}),
    VACUUMED: (name(SMALL), {}),
    NO_INDEX: (NEVER_VACUUMED, _NO_INDEX),
}


@dataclass(frozen=True)
class Grouping:
    """A variant: an attribute, a plan (of `FORCED`), and work_mem."""

    attribute: str
    plan: str
    work_mem: str

    @property
    def name(self) -> str:
        """The variant's name in the run record."""
        return f"by {self.attribute}, {self.plan}, {self.work_mem}"

    def time(self, connection: psycopg.Connection, block: Block) -> dict[str, float]:
        """Time the statement, which keeps its result, on the relation that was never vacuumed."""
        values = {"attribute": self.attribute, "relation": NEVER_VACUUMED}
        SQL.run(connection, "grouping.drop_the_groups")
        settings = FORCED[self.plan] | {"work_mem": self.work_mem}
        statement = SQL.text("grouping.keep_the_groups", **values)
        return {"time": milliseconds(connection, statement, settings)}


#: Settings under which the index order is timed. That plan needs no memory: the two do the same.
ORDERED_WORK_MEM = WORK_MEM[:2]
VARIANTS = [
    *(Grouping(UNIQUE, HASHED, work_mem) for work_mem in WORK_MEM),
    *(Grouping(UNIQUE, ORDERED, work_mem) for work_mem in ORDERED_WORK_MEM),
    *(Grouping(TWENTY, PICKED, work_mem) for work_mem in WORK_MEM),
]


# ---- plans of groupings


def _explained(
    connection: psycopg.Connection,
    variant: Grouping,
    state: str = NEW,
    execute: bool = False,
) -> plans.Plan:
    """The plan of a grouping on the relation in one of its states."""
    relation, settings = STATES[state]
    statement = SQL.text("grouping.groups", attribute=variant.attribute, relation=relation)
    settings = FORCED[variant.plan] | settings | {"work_mem": variant.work_mem}
    return explained(connection, statement, settings, execute)


def _shape(plan: plans.Plan) -> str:
    """The plan without the relation's name: it has two."""
    with_key = re.sub(r"\w+ using \w+_pkey", "its key", plan.shape())
    return re.sub(rf" ({NEVER_VACUUMED}|{name(SMALL)})\b", "", with_key)


@experiment(claims=["expl-012"])
def picks(chapter: Chapter) -> pd.DataFrame:
    """The plan that the planner picks for the unique attribute, for every work_mem of the grid.

    Columns: state (of `STATES`), work_mem, plan.
    """
    rows = []
    with chapter.server.connect() as connection:
        for state, work_mem in product(STATES, GRID):
            plan = _explained(connection, Grouping(UNIQUE, PICKED, work_mem), state)
            rows.append((state, work_mem, _shape(plan)))
    return pd.DataFrame(rows, columns=["state", "work_mem", "plan"])


def picked(plans: pd.DataFrame, work_mem: str, state: str = NEW) -> str:
    """One plan of `picks`."""
    return plans.set_index(["state", "work_mem"])["plan"][state, work_mem]


def plan_table(plans: pd.DataFrame) -> pd.DataFrame:
    """`picks` for the page: a row per work_mem, a column per state."""
    wide = plans.pivot(index="work_mem", columns="state", values="plan")
    return wide.reindex(list(GRID))[list(STATES)].reset_index()


@experiment(claims=["expl-020"])
def heap_fetches(chapter: Chapter) -> pd.DataFrame:
    """The index-only scan before and after VACUUM: columns state, heap_fetches, pages (touched)."""
    rows = []
    with chapter.server.connect() as connection:
        for state in (NEW, VACUUMED):
            plan = _explained(connection, Grouping(UNIQUE, ORDERED, "4MB"), state, execute=True)
            [scan] = plan.find("Index Only Scan")
            rows.append((state, scan.properties["Heap Fetches"], scan.page_accesses))
    return pd.DataFrame(rows, columns=["state", "heap_fetches", "pages"])


def _hashing(
    connection: psycopg.Connection, attribute: str, plan: str, work_mem: str
) -> dict[str, str | int | None]:
    """What hashing took: work_mem, plan, planned (partitions), batches, disk_kb, memory_kb, pages.

    What EXPLAIN doesn't tell is missing.
    """
    found = _explained(connection, Grouping(attribute, plan, work_mem), execute=True)
    properties = {
        "planned": "Planned Partitions",
        "batches": "HashAgg Batches",
        "disk_kb": "Disk Usage",
        "memory_kb": "Peak Memory Usage",
    }
    told = {column: found.properties.get(key) for column, key in properties.items()}
    row: dict[str, str | int | None] = {"work_mem": work_mem, "plan": _shape(found)}
    return row | told | {"pages": found.page_accesses}


@experiment(claims=["expl-011", "expl-019"])
def spills(chapter: Chapter) -> pd.DataFrame:
    """What forced hashing by the unique attribute does with too little memory.

    Columns: work_mem, planned (partitions; missing where none are), batches, disk_kb, memory_kb.
    """
    releases.require(chapter.server.version, "hash aggregation that spills")
    with chapter.server.connect() as connection:
        rows = [_hashing(connection, UNIQUE, HASHED, work_mem) for work_mem in GRID]
    return pd.DataFrame(rows).drop(columns=["plan", "pages"])


@experiment(claims=["expl-018"])
def twenty(chapter: Chapter) -> pd.DataFrame:
    """The grouping by twenty values with each of the slides' work_mem: plan and what it took.

    Columns: work_mem, plan, batches, disk_kb, memory_kb, pages.
    """
    with chapter.server.connect() as connection:
        rows = [_hashing(connection, TWENTY, PICKED, work_mem) for work_mem in WORK_MEM]
    return pd.DataFrame(rows).drop(columns="planned")


# ---- times of groupings


@experiment(claims=[f"expl-{number:03}" for number in range(13, 20)])
def grouping_times(chapter: Chapter, plans: pd.DataFrame) -> None:
    """Time of every variant, and of the picked plan for the unique attribute if it is another.

    `plans` are those of `picks`.
    """
    picked_ones = [timed_as(plans, work_mem) for work_mem in WORK_MEM]
    others = [variant for variant in picked_ones if variant.plan == PICKED]
    with chapter.server.connect() as connection:
        variants = [
            Variant(variant.name, partial(variant.time, connection))
            for variant in VARIANTS + others
        ]
        chapter.compare("grouping", variants, {"time": "ms"}, warmup=0)


def timed_as(plans: pd.DataFrame, work_mem: str) -> Grouping:
    """The variant that timed the plan picked for the unique attribute: a forced one if it is one.

    `plans` are those of `picks`.
    """
    plan = {BY_HASH: HASHED, GROUPED: ORDERED}.get(picked(plans, work_mem), PICKED)
    return forced(plan, work_mem)


def forced(plan: str, work_mem: str) -> Grouping:
    """The variant that timed this plan for the unique attribute with so much memory or the same."""
    if plan == ORDERED and work_mem not in ORDERED_WORK_MEM:
        work_mem = ORDERED_WORK_MEM[-1]
    return Grouping(UNIQUE, plan, work_mem)


# ---- joins

JOIN_GRID = ("64kB", "256kB", "1MB", "4MB", "16MB", "30MB", "100MB", "300MB")
#: Attribute of the smaller relation, attribute of the larger: neither, both, or one has an index.
PAIRS = (
    ("unique1", "unique1"),
    ("unique2", "unique2"),
    ("unique2", "unique1"),
    ("unique1", "unique2"),
)
MULTIPLIERS = (1, 2, 8)
#: What stays the same while work_mem varies.
JOINED = ["small", "large", "attributes", "multiplier"]

# The join, and the settings that leave the planner no other one.
HASH, MERGE = "Hash Join", "Merge Join"
FORCED_JOINS = {
    HASH: {"enable_mergejoin": "off", "enable_nestloop": "off"},
    MERGE: {"enable_hashjoin": "off", "enable_nestloop": "off"},
}
# Parallel hash, and the settings under which it is used, or one process joins.
_EAGER = FORCED_JOINS[HASH] | {
    "parallel_setup_cost": 0,
    "parallel_tuple_cost": 0,
    "min_parallel_table_scan_size": 0,
}
PARALLEL_HASH = {
    "off": _EAGER | {"enable_parallel_hash": "off", "max_parallel_workers_per_gather": 0},
    "on": _EAGER | {"enable_parallel_hash": "on"},
}

BATCHED = ("256kB", "1MB", "2MB", "4MB", "8MB")


def join(small: int, large: int, attributes: tuple[str, str], what: str = "join") -> str:
    """The slides' join of two relations, by their sizes; `what` is "join" or "counted_join"."""
    of_small, of_large = attributes
    return SQL.text(
        f"joins.{what}",
        small=name(small),
        large=name(large),
        of_small=of_small,
        of_large=of_large,
    )


# ---- plans of joins


@experiment(claims=[f"expl-{number:03}" for number in (29, 30, 31, 32, 35)])
def grid(chapter: Chapter) -> pd.DataFrame:
    """The join that is picked, and the costs of both joins, by work_mem.

    Over the sizes of the slides' pair, of one where both joins cost about the same, and of each of
    the size-up's relations with one of the slides'; and over the attributes of `PAIRS`.
    Columns: small, large (tuples), attributes, multiplier (hash_mem_multiplier), work_mem, picked,
    and "Hash Join" and "Merge Join" (costs).
    """
    pairs = [(SMALL, LARGE), (THIRD, SMALL)]
    pairs += [(min(t, LARGE), max(t, LARGE)) for t in relations.sizes(chapter) if t != LARGE]
    known = releases.knows(chapter.server.version, "hash_mem_multiplier")
    multipliers = MULTIPLIERS if known else MULTIPLIERS[:1]
    rows = []
    combinations = product(dict.fromkeys(pairs), PAIRS, multipliers, JOIN_GRID)
    with chapter.server.connect() as connection:
        for pair, attributes, multiplier, work_mem in combinations:
            own = {"enable_parallel_hash": "off", "work_mem": work_mem}
            if known:
                own["hash_mem_multiplier"] = multiplier
            query = join(*pair, attributes)
            rows.append(
                {
                    "small": pair[0],
                    "large": pair[1],
                    "attributes": " = ".join(attributes),
                    "multiplier": multiplier,
                    "work_mem": work_mem,
                    "picked": explained(connection, query, own).joins[0],
                    HASH: explained(connection, query, own | FORCED_JOINS[HASH]).total_cost,
                    MERGE: explained(connection, query, own | FORCED_JOINS[MERGE]).total_cost,
                }
            )
    return pd.DataFrame(rows)


def printed_range(grid: pd.DataFrame) -> pd.DataFrame:
    """The rows of the grid that the slides tried: their relations, join attribute and settings."""
    return grid[
        (grid["small"] == SMALL)
        & (grid["large"] == LARGE)
        & (grid["attributes"] == " = ".join(PAIRS[0]))
        & (grid["multiplier"] == MULTIPLIERS[0])  # what 11 did
    ]


def plan_changes(grid: pd.DataFrame) -> pd.DataFrame:
    """Where work_mem alone changes the picked join.

    Columns: small, large, attributes, multiplier, and picked: the joins in the order of growing
    work_mem.
    """
    rows = []
    for key, group in grid.groupby(JOINED, sort=False):
        if group["picked"].nunique() > 1:
            rows.append((*key, over_memory(group)))
    return pd.DataFrame(rows, columns=[*JOINED, "picked"])


def over_memory(rows: pd.DataFrame) -> str:
    """The picked joins in the order of growing work_mem, each from where on it is picked."""
    changes = rows[rows["picked"] != rows["picked"].shift()]
    return "; ".join(f"{row.picked} from {row.work_mem}" for row in changes.itertuples())


# ---- batches


@experiment(claims=["expl-033"])
def batches(chapter: Chapter) -> pd.DataFrame:
    """A relation joined with itself, run.

    Columns: work_mem, parallel_hash ("off", "on"), workers (launched), batches, memory_kb,
    temp_written (pages). Without parallel hash every process builds a table of its own; with it
    they share one, and may use the memory of all.
    """
    query = join(THIRD, THIRD, PAIRS[0], "counted_join")
    rows = []
    with chapter.server.connect() as connection:
        for work_mem, parallel in product(BATCHED, PARALLEL_HASH):
            settings = PARALLEL_HASH[parallel] | {"work_mem": work_mem}
            plan = explained(connection, query, settings, execute=True)
            [hashed] = plan.find("Hash")
            rows.append(
                {
                    "work_mem": work_mem,
                    "parallel_hash": parallel,
                    "workers": relations.workers(plan, "Launched"),
                    "batches": hashed.properties["Hash Batches"],
                    "memory_kb": hashed.properties["Peak Memory Usage"],
                    "temp_written": plan.buffers["temp_written"],
                }
            )
    return pd.DataFrame(rows)


# ---- times of joins


def timed_pair(chapter: Chapter) -> tuple[int, int]:
    """Sizes of the relations whose joins are timed, where both joins cost about the same.

    One is about three times the other.
    """
    smallest = relations.sizes(chapter)[0]
    return min(THIRD, smallest), max(THIRD, smallest)


def timed_join(
    connection: psycopg.Connection, small: int, large: int, how: str, work_mem: str, block: Block
) -> dict[str, float]:
    """Time one join of two relations by their sizes, in one process."""
    query = join(small, large, PAIRS[0], "counted_join")
    settings = FORCED_JOINS[how] | {"work_mem": work_mem, "max_parallel_workers_per_gather": 0}
    return {"time": milliseconds(connection, query, settings)}
