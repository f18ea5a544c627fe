"""Experiments 2 and 4: which grouping and which join the planner picks as work_mem grows.

As in the slides' appendix, what is timed of a grouping is CREATE TEMP TABLE ... AS, and the
relation is as CREATE and load left it: no VACUUM has marked its pages all-visible. As in the
slides, parallel hash is off unless said otherwise.
"""

import re
from collections.abc import Iterator
from itertools import product

import psycopg

from pgrerun.chapters.explorations.relations import (
    LARGE,
    NEVER_VACUUMED,
    ONE_PROCESS,
    SMALL,
    SQL,
    THIRD,
    Settings,
    connected,
    explained,
    milliseconds,
    name,
    sizes,
    workers,
)
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened
from pgrerun.record import statistics

WORK_MEM = (64, 4096, 30720)  # kB, the slides'
GRID = (64, 256, 1024, 2048, 4096, 8192, 16384, 30720, 307200)
UNIQUE, TWENTY = "unique2", "twenty"

# The plan, and the settings that leave the planner no other one.
PICKED, HASHED, ORDERED = "picked", "hashed", "in index order"
_NO_INDEX = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
FORCED: dict[str, Settings] = {
    PICKED: {},
    HASHED: _NO_INDEX | {"enable_sort": "off"},
    ORDERED: {"enable_hashagg": "off", "enable_sort": "off", "enable_seqscan": "off"},
}
# Attribute, plan and work_mem (kB) of what is timed for the chart alone.
DRAWN = {(UNIQUE, ORDERED, WORK_MEM[-1]), (TWENTY, PICKED, WORK_MEM[1])}
SHAPES = {"HashAggregate(Seq Scan)": HASHED, "GroupAggregate(Index Only Scan its key)": ORDERED}
# The relation that is grouped, and settings.
NEW, VACUUMED, NO_INDEX = "never vacuumed", "vacuumed", "no index used"
STATES: dict[str, tuple[str, Settings]] = {
    NEW: (NEVER_VACUUMED, {}),
    VACUUMED: (name(SMALL), {}),
    NO_INDEX: (NEVER_VACUUMED, _NO_INDEX),
}


# ---- groupings


def _grouping(
    connection: psycopg.Connection,
    attribute: str,
    plan: str,
    work_mem_kb: int,
    state: str = NEW,
    execute: bool = False,
) -> plans.Plan:
    """The plan of a grouping on the relation in one of its states."""
    relation, settings = STATES[state]
    statement = SQL.text("grouping.groups", attribute=attribute, relation=relation)
    settings = {**FORCED[plan], **settings, "work_mem": f"{work_mem_kb}kB"}
    return explained(connection, statement, settings, execute)


def _shape(plan: plans.Plan) -> str:
    """The plan without the relation's name: it has two."""
    with_key = re.sub(r"\w+ using \w+_pkey", "its key", plan.shape())
    return re.sub(rf" ({NEVER_VACUUMED}|{name(SMALL)})\b", "", with_key)


@experiment(units={"plan": "text"})
def grouping_plans(bed: Testbed) -> Iterator[Row]:
    """The plan that the planner picks for the unique attribute, by work_mem and state."""
    with connected(bed) as connection:
        for state, work_mem_kb in product(STATES, GRID):
            plan = _grouping(connection, UNIQUE, PICKED, work_mem_kb, state)
            yield {"state": state, "work_mem_kb": work_mem_kb, "plan": _shape(plan)}


@experiment(units={"heap_fetches": "tuples", "pages": "page accesses"})
def heap_fetches(bed: Testbed) -> Iterator[Row]:
    """The index-only scan before and after VACUUM. CannotMeasure before releases have one."""
    releases.require_settings(bed.server.version, ["enable_indexonlyscan"])
    with connected(bed) as connection:
        for state in (NEW, VACUUMED):
            plan = _grouping(connection, UNIQUE, ORDERED, WORK_MEM[1], state, execute=True)
            [scan] = plan.find("Index Only Scan")
            yield {
                "state": state,
                "heap_fetches": scan.properties["Heap Fetches"],
                "pages": scan.page_accesses,
            }


HASHING = {
    "plan": "text",
    "batches": "batches",
    "disk_kb": "kB",
    "memory_kb": "kB",
    "pages": "page accesses",
}


def _hashing(connection: psycopg.Connection, attribute: str, plan: str, work_mem_kb: int) -> Row:
    """What a grouping took; what EXPLAIN doesn't tell is missing."""
    found = _grouping(connection, attribute, plan, work_mem_kb, execute=True)
    return {
        "work_mem_kb": work_mem_kb,
        "plan": _shape(found),
        "batches": found.properties.get("HashAgg Batches"),
        "disk_kb": found.properties.get("Disk Usage"),
        "memory_kb": found.properties.get("Peak Memory Usage"),
        "pages": found.page_accesses,
    }


@experiment(units=HASHING)
def hash_spills(bed: Testbed) -> Iterator[Row]:
    """What forced hashing by the unique attribute does with little memory and with much."""
    releases.require(bed.server.version, "hash aggregation that spills")
    with connected(bed) as connection:
        for work_mem_kb in GRID:
            yield _hashing(connection, UNIQUE, HASHED, work_mem_kb)


@experiment(units=HASHING)
def twenty_groups(bed: Testbed) -> Iterator[Row]:
    """The grouping by twenty values with each of the slides' work_mem."""
    with connected(bed) as connection:
        for work_mem_kb in WORK_MEM:
            yield _hashing(connection, TWENTY, PICKED, work_mem_kb)


@experiment(units={"time": "ms"})
def grouping_times(bed: Testbed) -> Iterator[Row]:
    """Mean time of both groupings by work_mem, of the unique attribute with each plan.

    `picked` says of each whether the planner takes this plan with so much memory by itself. Where
    it takes neither of the two, its own is timed as well. Those that decide no word are timed a
    fifth as long, and the others lie so far apart that few blocks tell them.
    """
    with connected(bed) as connection:
        variants: list[Row] = []
        for work_mem_kb in WORK_MEM:
            shape = _shape(_grouping(connection, UNIQUE, PICKED, work_mem_kb))
            own = SHAPES.get(shape, PICKED)
            chosen = [(UNIQUE, plan, plan == own) for plan in dict.fromkeys((HASHED, ORDERED, own))]
            variants += [
                {"attribute": of, "plan": plan, "work_mem_kb": work_mem_kb, "picked": picked}
                for of, plan, picked in [*chosen, (TWENTY, PICKED, True)]
            ]

        def measure(
            block: Block, attribute: str, plan: str, work_mem_kb: int, picked: bool
        ) -> dict[str, float]:
            drawn = (attribute, plan, work_mem_kb) in DRAWN
            settings = {**FORCED[plan], "work_mem": f"{work_mem_kb}kB"}
            return _kept(
                connection, attribute, settings, shortened(bed.parameters.seconds, told=drawn)
            )

        yield from bed.compare(
            measure, variants, pairs=bed.timed_pairs(statistics.ENOUGH), warmup=0
        )


@experiment(units={"time": "ms"})
def twenty_times(bed: Testbed) -> Iterator[Row]:
    """Mean time of the grouping by twenty values with each of the slides' work_mem.

    They are to be alike, and a machine's speed drifts by more than they may differ: so within a
    block they take turns, statement by statement, until each has had its seconds. The block's
    first measurement is of all, and so is one that is repeated as others used the machine.
    """
    taken: dict[int, dict[int, float]] = {}
    with connected(bed) as connection:

        def take_turns() -> dict[int, float]:
            times: dict[int, list[float]] = {size: [] for size in WORK_MEM}
            order, least = list(WORK_MEM), 1000 * bed.parameters.seconds
            while not times[order[0]] or min(map(sum, times.values())) < least:
                for size in order:
                    settings = {"work_mem": f"{size}kB"}
                    times[size].append(_kept(connection, TWENTY, settings, 0)["time"])
                order.append(order.pop(0))
            return {size: sum(each) / len(each) for size, each in times.items()}

        def measure(block: Block, work_mem_kb: int) -> dict[str, float]:
            if work_mem_kb not in taken.get(block.index, {}):
                taken[block.index] = take_turns()
            return {"time": taken[block.index].pop(work_mem_kb)}

        yield from bed.compare(
            measure,
            {"work_mem_kb": WORK_MEM},
            pairs=bed.timed_pairs(int(bed.parameters.pairs)),
            warmup=0,
        )


def _kept(
    connection: psycopg.Connection, attribute: str, settings: Settings, seconds: float
) -> dict[str, float]:
    """The mean time of grouping and keeping the groups, repeated for so long."""
    statement = SQL.text("grouping.keep_the_groups", attribute=attribute, relation=NEVER_VACUUMED)
    drop = lambda: SQL.run(connection, "grouping.drop_the_groups")
    return {"time": milliseconds(connection, statement, settings, seconds, drop)}


# ---- joins

JOIN_GRID = (64, 256, 1024, 4096, 16384, 30720, 102400, 307200)  # kB
#: Attribute of the smaller relation, attribute of the larger: neither, both, or one has an index.
PAIRS = (
    ("unique1", "unique1"),
    ("unique2", "unique2"),
    ("unique2", "unique1"),
    ("unique1", "unique2"),
)
MULTIPLIERS = (1, 2, 8)
# The join, and the settings that leave the planner no other one.
FORCED_JOINS = {
    "hash_cost": {"enable_mergejoin": "off", "enable_nestloop": "off"},
    "merge_cost": {"enable_hashjoin": "off", "enable_nestloop": "off"},
}


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


@experiment(units={"picked": "text", "hash_cost": "", "merge_cost": ""})
def join_plans(bed: Testbed) -> Iterator[Row]:
    """The join that is picked, and what the planner takes each of both joins to cost.

    Over the sizes of the slides' pair, of one where both joins cost about the same, and of each of
    the size-up's relations with one of the slides'; over the attributes of `PAIRS`.
    """
    joined = [(SMALL, LARGE), (THIRD, SMALL)]
    joined += [(min(t, LARGE), max(t, LARGE)) for t in sizes(bed) if t != LARGE]
    known = releases.knows(bed.server.version, "hash_mem_multiplier")
    multipliers = MULTIPLIERS if known else MULTIPLIERS[:1]
    combinations = product(dict.fromkeys(joined), PAIRS, multipliers, JOIN_GRID)
    with connected(bed, THIRD, LARGE, *sizes(bed)) as connection:
        for (small, large), attributes, multiplier, work_mem_kb in combinations:
            own: Settings = {"enable_parallel_hash": "off", "work_mem": f"{work_mem_kb}kB"}
            own = {**own, "hash_mem_multiplier": multiplier} if known else own
            query = join(small, large, attributes)
            yield {
                "small": small,
                "large": large,
                "multiplier": multiplier,
                "of_small": attributes[0],
                "of_large": attributes[1],
                "work_mem_kb": work_mem_kb,
                **{
                    cost: explained(connection, query, {**own, **forced}).total_cost
                    for cost, forced in FORCED_JOINS.items()
                },
                "picked": explained(connection, query, own).joins[0],
            }


_EAGER = {
    **FORCED_JOINS["hash_cost"],
    "parallel_setup_cost": 0,
    "parallel_tuple_cost": 0,
    "min_parallel_table_scan_size": 0,
}


@experiment(units={"workers": "", "batches": "batches", "memory_kb": "kB", "temp_written": "pages"})
def join_batches(bed: Testbed) -> Iterator[Row]:
    """A relation joined with itself by hashing, run in one process and with parallel hash.

    Without parallel hash every process builds a table of its own; with it they share one, and may
    use the memory of all.
    """
    query = join(THIRD, THIRD, PAIRS[0], "counted_join")
    alone = {"enable_parallel_hash": "off", **ONE_PROCESS}
    with connected(bed, THIRD) as connection:
        for work_mem_kb, parallel in product((256, 1024, 2048, 4096, 8192), (False, True)):
            own = {"enable_parallel_hash": "on"} if parallel else alone
            settings = {**_EAGER, **own, "work_mem": f"{work_mem_kb}kB"}
            plan = explained(connection, query, settings, execute=True)
            [hashed] = plan.find("Hash")
            yield {
                "work_mem_kb": work_mem_kb,
                "parallel_hash": parallel,
                "workers": workers(plan, "Launched"),
                "batches": hashed.properties["Hash Batches"],
                "memory_kb": hashed.properties["Peak Memory Usage"],
                "temp_written": (plan.buffers or {})["temp_written"],
            }
