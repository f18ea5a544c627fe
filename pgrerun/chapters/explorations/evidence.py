"""What the measurements say about the claims, experiment by experiment of the slides."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    clock_sweep,
    planner,
    size_up,
)
from pgrerun.record import claims, printed, statistics, verdicts
from pgrerun.record.claims import MARGIN
from pgrerun.record.printed.explorations import POOLS, TUPLES, heap_pages, megabytes
from pgrerun.record.verdicts import Part, supporting

Facts = dict[str, bool | None | Part]

EXPECTED = "the slides' expectation that"
"""Begins a fact that the slides expected and didn't find."""

# ---- Experiment 1, times


def slowdown(chapter: Chapter, pool: str, name: str = buffer_pool.SWEEP) -> statistics.Interval:
    """Time to read after an update over that after a read, in one pool, by default in memory."""
    dirty, clean = (f"{pool}: {how}" for how in (buffer_pool.DIRTY, buffer_pool.CLEAN))
    return chapter.ratio(name, "time", dirty, clean)


def beyond_twice(chapter: Chapter) -> dict[str, statistics.Interval]:
    """The slow-downs in pools above twice the relation."""
    above = [pool for pool in buffer_pool.timed(chapter) if buffer_pool.SHARES[pool] > 2]
    return {pool: slowdown(chapter, pool) for pool in above}


def peaks(chapter: Chapter) -> Facts:
    """Whether the slow-down is largest where pool and relation are as large, each pool by itself.

    What the slides took for the relation's size is a little less than it, and is told.
    """
    times = chapter.table(buffer_pool.SWEEP, "time")
    ratios = {
        pool: times[f"{pool}: {buffer_pool.DIRTY}"] / times[f"{pool}: {buffer_pool.CLEAN}"]
        for pool in buffer_pool.timed(chapter)
    }
    equal, facts = ratios.pop(buffer_pool.EQUAL), {}
    for pool, ratio in ratios.items():
        more = verdicts.greater(statistics.ratio(equal, ratio, seed=chapter.parameters.seed))
        told = pool == buffer_pool.printed_pool("mb208")
        facts[f"the slow-down is larger than in a pool of {pool}"] = Part(more, essential=not told)
    return facts


def spared(chapter: Chapter) -> Facts:
    """Whether there is a slow-down where pool and relation are as large, and none above twice.

    None is less than the slides' own in their smallest pool.
    """
    none = claims.ledger()["expl-004"].tolerance
    facts: Facts = {
        "in a pool as large as the relation there is a slow-down": verdicts.greater(
            slowdown(chapter, buffer_pool.EQUAL)
        )
    }
    return facts | {
        f"in a pool of {pool} there is none": verdicts.about(ratio, 1, none)
        for pool, ratio in beyond_twice(chapter).items()
    }


def printed_slowdowns() -> pd.DataFrame:
    """The slides' rounds: reading after an update over the control's of the same number, by pool.

    Columns: median, low, high; indexed by pool ("mb128" and so on).
    """
    rounds = printed.table("explorations_pool_rounds").set_index("number")
    dirty, clean = rounds[rounds["group"] == "dirty"], rounds[rounds["group"] == "clean"]
    ratios = {pool: statistics.ratio(dirty[pool], clean[pool]) for pool in POOLS}
    rows = {pool: (ratio.estimate, ratio.low, ratio.high) for pool, ratio in ratios.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["median", "low", "high"])


def suspect() -> Facts:
    """What of the slides' readings speaks for throwing those at 500 MB away."""
    rounds = printed.table("explorations_pool_rounds")
    control = rounds[rounds["group"] == "clean"][list(POOLS)]
    spread = control.max() / control.min()
    interval = printed_slowdowns().loc["mb500"]
    return {
        "the control readings at 500 MB spread more than at the other pools": (
            spread["mb500"] > spread.drop("mb500").max()
        ),
        "the readings at 500 MB can't tell a slow-down from none": (
            interval["low"] <= 1 <= interval["high"]
        ),
    }


# ---- pages written; `written` is the frame of `experiments.buffer_pool.written`


def pick(written: pd.DataFrame, pool: str, variant: str) -> pd.Series:
    """One row of `written`."""
    return written.set_index(["pool", "variant"]).loc[(pool, variant)]


def reader_writes(written: pd.DataFrame) -> Facts:
    """Whether the reader has to write first, where pool and relation are as large."""
    clean, dirty, checkpointed = (
        pick(written, buffer_pool.EQUAL, variant)
        for variant in (buffer_pool.CLEAN, buffer_pool.DIRTY, buffer_pool.CHECKPOINTED)
    )
    return {
        "after the update dirty pages lie in the pool": dirty["dirty_before"] > 0,
        "the reader writes some of them": (
            dirty["written"] > clean["written"] and dirty["dirty_after"] < dirty["dirty_before"]
        ),
        "after a checkpoint it writes none": checkpointed["written"] == 0,
        "for most of its pages it has to write one": supporting(
            2 * dirty["written"] > dirty["read"]
        ),
    }


def other_relation(written: pd.DataFrame) -> Facts:
    """Whether what the reader of one relation writes are pages of the other."""
    dirty = pick(written, buffer_pool.EQUAL, buffer_pool.DIRTY)
    return {
        "a reader of miltup1 finds dirty pages of miltup2": dirty["dirty_before"] > 0,
        "as many as it writes are no longer dirty": (
            0 < dirty["written"] == dirty["dirty_before"] - dirty["dirty_after"]
        ),
    }


def _writes(written: pd.DataFrame) -> pd.Series:
    """Pages that the reader writes after the update, by pool."""
    return written[written["variant"] == buffer_pool.DIRTY].set_index("pool")["written"]


def peak(written: pd.DataFrame) -> Facts:
    """Whether the reader writes most where pool and relation are as large."""
    pages = _writes(written)
    equal = pages.pop(buffer_pool.EQUAL)
    more = {f"more than in a pool of {pool}": supporting(equal > n) for pool, n in pages.items()}
    return {
        "with a pool as large as the relation the reader writes most": (pages < equal).all()
    } | more


def avoided(written: pd.DataFrame) -> Facts:
    """Whether pools above twice the relation spare the reader the writes, each by itself."""
    pages = _writes(written)
    above = pages[pages.index.map(buffer_pool.SHARES) > 2]
    return {f"in a pool of {pool} the reader writes no page": n == 0 for pool, n in above.items()}


def by_pool(written: pd.DataFrame) -> pd.DataFrame:
    """`written` for the page: one row per pool."""
    pages = written.pivot(index="pool", columns="variant", values="written")
    dirty = written[written["variant"] == buffer_pool.DIRTY].set_index("pool")
    return pd.DataFrame(
        {
            "dirty pages met": dirty["dirty_before"],
            f"written {buffer_pool.CLEAN}": pages[buffer_pool.CLEAN],
            f"written {buffer_pool.DIRTY}": pages[buffer_pool.DIRTY],
            f"written after {buffer_pool.CHECKPOINTED}": pages[buffer_pool.CHECKPOINTED],
            "its own pages left after the update": dirty["left"],
        },
        index=pd.Index(written["pool"].unique(), name="pool / relation"),
    ).reset_index()


# ---- the clock


def stays(found: clock_sweep.Survivors, replayed: pd.DataFrame) -> pd.DataFrame:
    """How many pools are read until half of each relation's pages are gone.

    The whole flood if they never are. Columns: label (the server or a strategy), kind (of
    `charts.MARKS`), and one for each history. `replayed` is that of
    `experiments.clock_sweep.replayed`.
    """
    seen = found.pages[found.pages["flood"] == clock_sweep.CROWD].assign(strategy="this server")
    rows = []
    for label in ("this server", *clock_sweep.STRATEGIES):
        kind, source = (
            ("simulated", replayed) if label in clock_sweep.STRATEGIES else ("measured", seen)
        )
        own = source[source["strategy"] == label]
        gone = own[own["kept"] < 0.5].groupby("history")["pages_read"].min()
        stay = gone.reindex(list(clock_sweep.HISTORIES)).fillna(own["pages_read"].max())
        rows.append({"label": label, "kind": kind, **stay})
    return pd.DataFrame(rows)


def clock(found: clock_sweep.Survivors, replayed: pd.DataFrame) -> Facts:
    """What shows that victims are chosen by the clock sweep, and that it matters to later reads."""
    kept = found.pages.set_index(["flood", "history"])
    often, once = (
        kept.loc[(clock_sweep.CROWD, clock_sweep.OFTEN)],
        kept.loc[(clock_sweep.CROWD, clock_sweep.ONCE)],
    )
    ring = (
        found.pages[found.pages["flood"] == clock_sweep.RING].groupby("pages_read")["kept"].mean()
    )
    here, clock, recency = stays(found, replayed)[clock_sweep.OFTEN]
    usage, present = often["usage"].to_numpy(), often["kept"].to_numpy() > 0
    return {
        "a page's usage count grows with its uses": usage[0] > once["usage"].iloc[0],
        "the sweep lowers a page's usage count": usage[present].min() < usage[0] - 1,
        "pages used often outlive pages used once": here
        > stays(found, replayed)[clock_sweep.ONCE].iloc[0],
        "by about as much as under a simulated clock": supporting(
            abs(here - clock) < abs(here - recency)
        ),
        "a large scan displaces them as well": supporting(ring.iloc[-1] < 0.5),
    }


def swapped_in(provisions: pd.DataFrame) -> Facts:
    """Whether the source provides for another strategy; one that needs no compiling is told."""
    names = provisions.set_index("way")["found"]
    return {
        "the choice of a victim is a function of its own, so that another can be compiled in": (
            names[clock_sweep.FUNCTION] != ""
        ),
        "whoever asks for a page may name another strategy": names[clock_sweep.CALLER] != "",
        "an extension or a setting takes the choice over": supporting(
            names[clock_sweep.HOOK] != "" or names[clock_sweep.SETTING] != ""
        ),
    }


# ---- every writer


def only_two_writers(writers: pd.DataFrame) -> Facts:
    """Whether pages are written at replacement and at checkpoints, and at no other time."""
    default = writers.set_index("background_writer").loc["as by default"]
    return {
        "a backend that needs a buffer writes the page in it": default["client backend"] > 0,
        "a checkpoint writes what is dirty": default["checkpointer"] > 0,
        "nobody writes a page at another time": default["background writer"] == 0,
    }


def delay(waiting: pd.DataFrame) -> Facts:
    """Whether a delay helps, and whether the checkpointer is why."""
    at_once, waited = (
        waiting[waiting["event"] == event].iloc[0]
        for event in (buffer_pool.DIRTY, buffer_pool.WAITED)
    )
    return {
        "after the delay the reader writes fewer pages than at once": (
            waited["reader"] < at_once["reader"]
        ),
        # it writes something in any case, as an update of this size makes a checkpoint due
        "the checkpointer writes more pages until then": (
            waited["checkpointer"] > at_once["checkpointer"]
        ),
        "the background writer writes more pages until then": supporting(
            waited["background_writer"] > at_once["background_writer"]
        ),
        "fewer pages are dirty then": supporting(waited["dirty"] < at_once["dirty"]),
    }


# ---- Experiment 2; `plans` is the frame of `experiments.planner.picks`

SMALLEST, DEFAULT, AMPLE = planner.WORK_MEM


def unfit(plans: pd.DataFrame, spills: pd.DataFrame) -> Facts:
    """Whether hash aggregation is left where the hash table doesn't fit, forced hashing spilling.

    With the slides' settings, and beside that without the index as an alternative; `spills` is the
    frame of `experiments.planner.spills`.
    """
    batches = spills.set_index("work_mem")["batches"]
    facts: Facts = {}
    for work_mem in planner.WORK_MEM:
        if batches[work_mem] > 1:
            with_index, without = (
                not planner.picked(plans, work_mem, state).startswith("HashAggregate")
                for state in (planner.NEW, planner.NO_INDEX)
            )
            told = f"with {work_mem}, where hashing would spill, another plan is picked"
            facts[told] = with_index
            facts[f"without the index, too, with {work_mem}"] = supporting(without)
    return facts


def inefficient(chapter: Chapter, spills: pd.DataFrame) -> Facts:
    """Whether a hash table larger than work_mem goes to disk in batches, and takes longer."""
    rows = spills.set_index("work_mem")
    small, large = rows.loc[SMALLEST], rows.loc[AMPLE]
    slower = chapter.ratio(
        "grouping",
        "time",
        *(planner.forced(planner.HASHED, work_mem).name for work_mem in (SMALLEST, AMPLE)),
    )
    return {
        f"with {SMALLEST} hashing puts batches on disk": (
            small["batches"] > 1 and small["disk_kb"] > 0
        ),
        f"with {AMPLE} hashing puts none on disk": (
            large["batches"] == 1 and large["disk_kb"] == 0
        ),
        "it takes longer with less": supporting(verdicts.greater(slower, margin=MARGIN)),
    }


def index_order(plans: pd.DataFrame) -> Facts:
    """Whether groups come in the order of the index at the slides' two smaller settings."""
    return {
        f"with {work_mem}: {planner.GROUPED}": planner.picked(plans, work_mem) == planner.GROUPED
        for work_mem in (SMALLEST, DEFAULT)
    }


def fetches_when_new(fetches: pd.DataFrame) -> int:
    """Heap fetches of the index-only scan before VACUUM; of `experiments.planner.heap_fetches`."""
    return fetches["heap_fetches"].iloc[0]


def regrets(chapter: Chapter, plans: pd.DataFrame) -> pd.DataFrame:
    """What the picked plan's time is over that of the other one, or the faster other, by work_mem.

    Columns: work_mem, picked, other (plans), their times (ms, medians), and ratio with its interval
    (low, high).
    """
    times = chapter.table("grouping", "time")
    rows = []
    for work_mem in planner.WORK_MEM:
        pick = planner.timed_as(plans, work_mem)
        forced = [planner.forced(plan, work_mem) for plan in (planner.HASHED, planner.ORDERED)]
        other = min((x for x in forced if x != pick), key=lambda x: times[x.name].median())
        ratio = statistics.ratio(times[pick.name], times[other.name], seed=chapter.parameters.seed)
        row = {"work_mem": work_mem, "picked": pick.plan, "other": other.plan}
        row |= {"picked (ms)": times[pick.name].median(), "other (ms)": times[other.name].median()}
        rows.append(row | {"ratio": ratio.estimate, "low": ratio.low, "high": ratio.high})
    return pd.DataFrame(rows)


def optimal(chapter: Chapter, regrets: pd.DataFrame) -> Facts:
    """Whether the picked plan is the faster one, where the result exceeds work_mem.

    One that is slower by less than the smallest effect of interest isn't the wrong one.
    """
    pairs = chapter.table("grouping", "time").shape[0]
    return {
        f"with {row.work_mem} the picked plan isn't slower than the other": verdicts.less(
            statistics.Interval(row.ratio, row.low, row.high, pairs)
            if row.ratio > 0
            else statistics.nothing(),
            1 + MARGIN,
        )
        for row in regrets[regrets["work_mem"] != AMPLE].itertuples()
    }


def both_better(chapter: Chapter, plans: pd.DataFrame) -> Facts:
    """Whether both statements are faster with 4 MB than with 64 kB, each with the plan picked."""
    statements = {
        planner.UNIQUE: [planner.timed_as(plans, work_mem) for work_mem in (SMALLEST, DEFAULT)],
        planner.TWENTY: [
            planner.Grouping(planner.TWENTY, planner.PICKED, work_mem)
            for work_mem in (SMALLEST, DEFAULT)
        ],
    }
    gains = {
        f"GROUP BY {attribute} is faster": chapter.ratio("grouping", "time", less.name, more.name)
        for attribute, (less, more) in statements.items()
    }
    faster = {words: verdicts.greater(gain, margin=MARGIN) for words, gain in gains.items()}
    slower = verdicts.every(verdicts.less(gain, margin=MARGIN) for gain in gains.values())
    both = verdicts.fact(verdicts.every(faster.values()), slower)
    return {f"{EXPECTED} both queries are faster with {DEFAULT} than with {SMALLEST}": both} | {
        words: supporting(value) for words, value in faster.items()
    }


def flat(chapter: Chapter, twenty: pd.DataFrame) -> Facts:
    """Whether work_mem is nothing to the grouping by twenty values.

    `twenty` is the frame of `experiments.planner.twenty`.
    """
    times = [planner.Grouping(planner.TWENTY, planner.PICKED, w).name for w in planner.WORK_MEM]
    same = verdicts.every(
        verdicts.about(chapter.ratio("grouping", "time", name, times[-1]), 1, MARGIN)
        for name in times[:-1]
    )
    return {
        "the plan is the same with every work_mem": twenty["plan"].nunique() == 1,
        "pages, batches and memory are the same with every work_mem": (
            len(twenty.drop(columns=["work_mem", "plan"]).drop_duplicates()) == 1
        ),
        "so is its time": supporting(same),
    }


def unique_over_twenty(chapter: Chapter, plans: pd.DataFrame) -> statistics.Interval:
    """The picked plan for the unique attribute over that for twenty values, with least memory.

    Settings under which a statement does the same work are one variant, of their mean times: those
    of the index order, and all of the grouping by twenty values (see `flat`).
    """
    unique = planner.timed_as(plans, SMALLEST)
    same = planner.ORDERED_WORK_MEM if unique.plan == planner.ORDERED else [SMALLEST]
    uniques = [planner.Grouping(unique.attribute, unique.plan, work_mem).name for work_mem in same]
    twenties = [planner.Grouping(planner.TWENTY, planner.PICKED, w).name for w in planner.WORK_MEM]
    times = chapter.table("grouping", "time")
    return statistics.ratio(
        *(times[names].mean(axis=1) for names in (uniques, twenties)), seed=chapter.parameters.seed
    )


# ---- Experiment 3; `plans` is the frame of `experiments.size_up.plan_list`


def growth(chapter: Chapter, what: str) -> statistics.Interval:
    """Time on the largest relation over that on one of a hundredth."""
    smallest, *_, largest = relations.sizes(chapter)
    return chapter.ratio(
        "size-up", "time", size_up.variant(what, largest), size_up.variant(what, smallest)
    )


def exponent(chapter: Chapter, what: str) -> statistics.Interval:
    """p of time ~ tuples^p over the sizes, every repetition a point."""
    times = chapter.table("size-up", "time")
    variants = {size_up.variant(what, size): size for size in relations.sizes(chapter)}
    every = times.filter(list(variants)).melt(var_name="variant")
    return statistics.exponent(every["variant"].map(variants), every["value"])


def lookups(chapter: Chapter, plans: pd.DataFrame) -> Facts:
    """Whether a lookup has more to do in a relation a hundred times as large, but far less so.

    How much more is decided by the pages: EXPLAIN tells times in thousandths of a millisecond, of
    which a lookup takes two or three.
    """
    slower = growth(chapter, size_up.LOOKUP)
    pages = plans[plans["attribute"] == size_up.INDEXED].set_index("tuples")["pages"]
    smallest, *_, largest = relations.sizes(chapter)
    few, many = pages[smallest], pages[largest]
    return {
        f"in {relations.name(largest)} a lookup touches more pages than in"
        f" {relations.name(smallest)}": bool(many > few),
        "it doesn't take ten times as long": verdicts.less(slower, 10),
        "it takes longer": supporting(verdicts.greater(slower, margin=MARGIN)),
    }


def close(chapter: Chapter, plans: pd.DataFrame) -> Facts:
    """Whether a sequential scan takes about as long on much data as on little."""
    scans = plans[plans["attribute"] == size_up.NOT_INDEXED]["plan"]
    return {
        f"{EXPECTED} a scan of the large relation takes less than twice as long": (
            verdicts.less(growth(chapter, size_up.SCAN), 2)
        ),
        "both queries scan sequentially": supporting(scans.str.contains("Seq Scan").all()),
    }


def access_paths(plans: pd.DataFrame) -> Facts:
    """Whether indexed queries use the index and the others don't."""
    facts = {}
    for row in plans.itertuples():
        indexed = row.attribute == size_up.INDEXED
        what = "an index scan" if indexed else "another scan"
        by_index = row.plan.startswith("Index Scan")
        facts[f"{row.relation}, {row.attribute}: {what}"] = by_index == indexed
    return facts


def parallel(chapter: Chapter, plans: pd.DataFrame) -> Facts:
    """Whether two workers are planned for the largest relation's scan and none for 100 000."""
    planned = plans[plans["attribute"] == size_up.NOT_INDEXED].set_index("tuples")["workers"]
    wanted = printed.cell("explorations_plans", "scan_large", "workers")
    return {
        "two workers for the largest relation": planned[relations.sizes(chapter)[-1]] == wanted,
        f"none for {relations.SMALL:,} tuples": planned[relations.SMALL] == 0,
    }


def of_metrics(chapter: Chapter, experiment: str, metric: str, base: str) -> statistics.Interval:
    """One metric over another, of an experiment with a single variant."""
    ours, others = (chapter.table(experiment, one).iloc[:, 0] for one in (metric, base))
    return statistics.ratio(ours, others, seed=chapter.parameters.seed)


def waiting(chapter: Chapter, *compared: str) -> statistics.Interval:
    """Share of its time that the largest relation's first scan waits for reads."""
    return chapter.median("cold", "waiting", "restarted")


def rates(chapter: Chapter) -> pd.DataFrame:
    """MB/s of scans, printed, cold and warm.

    Columns: what, small relation (MB/s), a hundred times as large (MB/s).
    """
    columns = ["what", "small relation (MB/s)", "a hundred times as large (MB/s)"]
    smallest, *_, largest = relations.sizes(chapter)
    in_print = printed.table("explorations_sizeup_averages").loc["average"]
    then = (TUPLES["hundredktup"], in_print["q3"]), (TUPLES["tenmiltup"], in_print["q4"])
    rows = [("printed", *(_rate(*scan) for scan in then))]
    for state in ("cold", "warm"):
        medians = [
            chapter.median("cold", f"{state} scan, {words}", "restarted").estimate
            for words in ("small", "large")
        ]
        rows.append((f"here, {state}", _rate(smallest, medians[0]), _rate(largest, medians[1])))
    return pd.DataFrame(rows, columns=columns)


def _rate(tuples: int, milliseconds: float) -> float:
    return 1000 * megabytes(heap_pages(tuples)) / milliseconds


# ---- Experiment 4; `grid` is the frame of `experiments.planner.grid`

NEITHER_INDEXED, BOTH_INDEXED = (" = ".join(pair) for pair in planner.PAIRS[:2])


def preferred(grid: pd.DataFrame) -> Facts:
    """Whether a hash join is picked with default settings, for each small and larger relation."""
    default = grid[(grid["work_mem"] == "4MB") & (grid["attributes"] == NEITHER_INDEXED)]
    return {
        f"{relations.name(small)} with {relations.name(large)}: {planner.HASH}": (
            group["picked"] == planner.HASH
        ).all()
        for (small, large), group in default.groupby(["small", "large"])
    }


def merge_joins(grid: pd.DataFrame) -> Facts:
    """Whether a merge join is picked below the smaller relation's size and above the larger's."""
    own = planner.printed_range(grid).set_index("work_mem")["picked"]
    less = own[["64kB", "256kB", "1MB", "4MB", "16MB"]]
    return {
        f"{EXPECTED} with less memory than the smaller relation a merge join is picked": (
            less == planner.MERGE
        ).any(),
        f"{EXPECTED} with more memory than the larger relation a merge join is picked": (
            own["300MB"] == planner.MERGE
        ),
    }


def ignored(grid: pd.DataFrame) -> Facts:
    """Whether work_mem is without influence on how joins are chosen."""
    own = planner.printed_range(grid)
    return {
        "the hash join costs the same whatever the memory": own[planner.HASH].nunique() == 1,
        "the same join is picked whatever the memory, for all sizes and attributes of the grid": (
            planner.plan_changes(grid).empty
        ),
        "the same join is picked whatever the memory, for the slides' sizes": own[
            "picked"
        ].nunique()
        == 1,
    }


def considered(grid: pd.DataFrame, plans: pd.DataFrame) -> Facts:
    """Whether the planner ignores configured memory; `plans` are `experiments.planner.picks`."""
    own = planner.printed_range(grid)
    groupings = plans[plans["state"] == planner.NEW]
    return {
        "the grouping by unique2 is the same whatever the memory": groupings["plan"].nunique() == 1,
        "the costs of the join are the same whatever the memory": (
            own[planner.HASH].nunique() == own[planner.MERGE].nunique() == 1
        ),
        "so is the join": supporting(own["picked"].nunique() == 1),
    }


def clustered(grid: pd.DataFrame) -> Facts:
    """Whether a merge join is picked on the clustered index, whatever the memory.

    For the slides' relations, and beside that for all other sizes of the grid.
    """
    both = grid[grid["attributes"] == BOTH_INDEXED].assign(merged=grid["picked"] == planner.MERGE)
    facts: Facts = {}
    for (small, large), merged in both.groupby(["small", "large"])["merged"].all().items():
        own = (small, large) == (relations.SMALL, relations.LARGE)
        told = f"{relations.name(small)} with {relations.name(large)}: {planner.MERGE}"
        facts[told] = Part(merged, essential=own)
    return facts


def fewer_batches(batches: pd.DataFrame) -> Facts:
    """Whether parallel hash gets by with fewer batches for the same work_mem.

    `batches` is the frame of `experiments.planner.batches`.
    """
    wide = batches.pivot(index="work_mem", columns="parallel_hash", values="batches")
    short = wide[wide["off"] > 1]
    fewer = short["on"] < short["off"]
    return {
        "where one process needs several batches, it sometimes needs fewer": fewer.any(),
        "it always does": supporting(len(short) > 0 and fewer.all()),
    }


def workers(found: pd.DataFrame) -> Facts:
    """Whether the planner plans with workers that aren't there, or that it may not ask for.

    `found` is the frame of `experiments.size_up.planned_workers`.
    """
    by = found.set_index(["max_parallel_workers", "per_gather"])
    return {
        "with one worker for the whole server two are planned": by.at[(1, 2), "planned"] == 2,
        "of these two one is launched": by.at[(1, 2), "launched"] == 1,
        "with one worker for each Gather two are planned, too": supporting(
            by.at[(8, 1), "planned"] == 2
        ),
    }
