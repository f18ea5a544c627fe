"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import dirt, grouping, joins, pools, releases, sizeup
from pgrerun.chapters.explorations.clock import CROWD, OFTEN, Survivors
from pgrerun.chapters.explorations.pools import DIRTY, WAITED
from pgrerun.chapters.explorations.relations import LARGE, SMALL, name, sizes
from pgrerun.published.explorations import TUPLES, heap_pages, megabytes


def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor from two arms of Experiment 2 that differ in a setting which their plan doesn't use."""
    times = chapter.table("grouping", "time")
    if times.empty:
        return None
    return narrate.noise(statistics.noise_floor(*(times[grouping.arm(grouping.UNIQUE, grouping.ORDERED, work_mem)] for work_mem in grouping.IDLE)))


def printed_intervals() -> narrate.Sentence:
    """What the slides' own readings can tell, pool by pool."""
    found = pools.printed_slowdowns()
    parts = [
        f"{pools.LABELS[pool]}: {narrate.interval(statistics.Interval(row['median'], row['low'], row['high'], 5))}, which {'includes' if row['low'] <= 1 <= row['high'] else 'excludes'} no effect"
        for pool, row in found.iterrows()
    ]
    return narrate.Sentence(f"Taken as pairs, the slides' five rounds give these median slow-downs with their ranges. {'; '.join(parts)}.")


def ring(chapter: Chapter, written: pd.DataFrame | None) -> narrate.Sentence | None:
    """How much of the reading is writing, by pool, what is left of the reader's pages, and what that means for the slides' relation."""
    if written is None:
        return None
    below = [pool for pool in pools.counted(chapter) if pools.pools()[pool] < 4]
    rows = [dirt.pick(written, pool, DIRTY) for pool in below]
    pages, printed = heap_pages(chapter.parameters.tuples), heap_pages(TUPLES["miltup"])
    left = [row["left"] for row in rows]
    said = (
        f"In pools of {below[0].split(' ')[0]} to {below[-1].split(' ')[0]} times the relation the reader writes {_range([row['written'] for row in rows])} for the {narrate.number(pages)} that it reads, "
        f"and afterwards {_range(left)} of its relation {'is' if max(left) == 1 else 'are'} in the pool"
    )
    if max(left) > pages / 2:
        return narrate.Sentence(f"{said}.")
    return narrate.Sentence(
        f"{said}: a scan of more than a quarter of the pool gets a small ring of buffers and keeps reusing them. It pays for making its ring clean and for nothing else. "
        f"In release 11 such a ring had {narrate.number(dirt.RING_OF_11)} pages, whatever the pool; of the {narrate.number(printed)} pages of the slides' relation that is {100 * dirt.RING_OF_11 / printed:.1f} %."
    )


def _range(counts: list[int]) -> str:
    """Of pages: "32 pages", or "20 to 32 pages"."""
    return ("" if min(counts) == max(counts) else f"{narrate.number(min(counts))} to ") + narrate.count(max(counts), "page")


def expected_regime(chapter: Chapter, beside: pd.DataFrame | None) -> narrate.Sentence | None:
    """What the reader without a ring pays, by count and by time."""
    if beside is None or chapter.table("ring", "time").empty:
        return None
    own = beside[(beside["reader"] == dirt.WITHOUT) & (beside["arm"] == DIRTY)].iloc[0]
    slow = dirt.ring_slowdown(chapter)
    return narrate.Sentence(
        f"Without a ring, {narrate.number(own['written'])} of the {narrate.number(own['read'])} pages that are read cost a write."
    ) + narrate.ratio_sentence(slow, "time", "that read", "the same without an update")


def turns(found: Survivors | None) -> narrate.Sentence | None:
    """How many uses the hand takes from a page while one pool of pages is read, and why it isn't one."""
    if found is None:
        return None
    often = found.pages[(found.pages["flood"] == CROWD) & (found.pages["history"] == OFTEN)]
    started, spent = often["usage"].iloc[0], often[often["usage"] == 0]["pages_read"].min()
    said = f"A page that was read several times has a usage count of {narrate.number(started, 1)} when the flood of many small relations begins"
    if pd.isna(spent):
        return narrate.Sentence(f"{said}, and some of it is left at the end.")
    said += f", and of zero when {narrate.number(spent)} pools of them have been read"
    if started / spent < 1.5:
        return narrate.Sentence(f"{said}.")
    return narrate.Sentence(
        f"{said}: it loses {narrate.number(started / spent, 1)} for each pool. The hand has to go round twice to fill a pool with pages that are used once, "
        "first to take that one use from the pages that are there, and then to take their buffers."
    )


def fading(waiting: pd.DataFrame | None) -> narrate.Sentence | None:
    """What the background writer cleans while nobody asks for a buffer."""
    if waiting is None:
        return None
    start, end = (waiting[waiting["event"] == event].iloc[0] for event in (dirt.MEANWHILE, WAITED))
    unused = lambda row: f"{narrate.number(row['unused']) if row['unused'] else 'none'} of them with a usage count of zero"
    said = (
        f"Right after the update {narrate.count(start['dirty'], 'page')} {'is' if start['dirty'] == 1 else 'are'} dirty, {unused(start)}; "
        f"after {narrate.number(end['seconds'])} s it is {narrate.number(end['dirty'])}, {unused(end)}"
    )
    if end["dirty"] == start["dirty"]:
        return narrate.Sentence(f"{said}.")
    return narrate.Sentence(f"{said}. The background writer cleans ahead of the hand, and only what the hand could take at once; as long as nobody asks for a buffer the hand stands still, and every other page keeps its count.")


def first_reader(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What the updated relation's first reader writes."""
    if found is None:
        return None
    first, second = found.iloc[0], found.iloc[1]
    return narrate.Sentence(
        f"The first to read the updated relation makes {narrate.count(first['dirtied'], 'page')} dirty and logs {narrate.count(first['wal_fpi'], 'full page image')} "
        f"({narrate.number(first['wal_bytes'] / 2**20, 1)} MB); the second makes {narrate.count(second['dirtied'], 'page')} dirty. A larger pool changes nothing about that."
    )


def checkpoint_suspected(log: pd.DataFrame | None) -> narrate.Sentence | None:
    """How many of the slides' updates would have made a checkpoint due."""
    if log is None:
        return None
    fresh, later = log["bytes per tuple"]
    first, each = (TUPLES["miltup"] * x / 2**20 for x in (fresh, later))
    # A checkpoint begins when the log since the last one reaches max_wal_size / (1 + completion target), by default 1 GB and 0.5 in release 11.
    due = 1024 / 1.5
    updates = max(1, 1 + -(-(due - first) // each))
    return narrate.Sentence(
        f"By the log that an update writes here ({narrate.number(fresh)} bytes per tuple right after a checkpoint, {narrate.number(later)} later), one update of the slides' million tuples writes "
        f"{narrate.number(first, 0)} MB, and the next ones {narrate.number(each, 0)} MB each. With the default settings of release 11 a checkpoint is due after {narrate.number(due, 0)} MB: "
        f"within {narrate.count(updates, 'update')}. So a checkpoint is likely to have run beside {'each' if updates == 1 else 'some'} of the five rounds{'' if updates == 1 else ', and not beside others'}."
    )


def spilled(spills: pd.DataFrame | None) -> narrate.Sentence | None:
    """What became of the rule that hashing is out when the table doesn't fit."""
    if spills is None:
        return None
    if spills["batches"].isna().all():
        return narrate.Sentence("This release can't spill: a hash table that doesn't fit grows beyond work_mem.")
    small, large = spills.iloc[0], spills.iloc[-1]
    return narrate.Sentence(
        f"Forced to hash with {small['work_mem']}, it works in {narrate.count(small['batches'], 'batch', 'batches')} and puts {narrate.number(small['disk_kb'] / 1024, 1)} MB on disk; "
        f"with {large['work_mem']} it takes {narrate.number(large['memory_kb'] / 1024, 1)} MB of memory in {narrate.count(large['batches'], 'batch', 'batches')}."
    )


def picked_slower(chapter: Chapter, plans: pd.DataFrame | None) -> narrate.Sentence | None:
    """At the slides' largest work_mem: what is picked, and how the other plan does."""
    ratio = grouping.switched(chapter)
    if ratio is None or plans is None:
        return None
    now = grouping.picked(plans, grouping.UNIQUE, "30MB")
    first = next((work_mem for work_mem in grouping.GRID if grouping.picked(plans, grouping.UNIQUE, work_mem).startswith("HashAggregate")), None)
    since = f"from {first} on" if first else "at no setting of the grid"
    vacuumed = grouping.picked(plans, grouping.UNIQUE, "30MB", grouping.VACUUMED)
    return narrate.Sentence(
        f"With 30MB the planner picks {now}; hashing is picked {since}. After a VACUUM it picks {vacuumed}, since an index-only scan then needs no visit to the heap: "
        "what looked like an effect of memory rests on a relation that was never vacuumed."
        if vacuumed != now else f"With 30MB the planner picks {now}, before a VACUUM and after it; hashing is picked {since}."
    )


def kept_result(chapter: Chapter) -> narrate.Sentence | None:
    """What writing the result into a table adds."""
    found = grouping.ratio(chapter, (grouping.UNIQUE, grouping.HASHED, "30MB"), (grouping.UNIQUE, grouping.HASHED, "30MB", grouping.NEW, grouping.COUNTED))
    return None if found is None else narrate.ratio_sentence(found, "time to group by unique2", "the statement that keeps its result in a table", "one that only counts it")


def exponents(chapter: Chapter) -> narrate.Sentence | None:
    """The exponents of growth, for lookups and scans."""
    found = {what: sizeup.exponent(chapter, what) for what in (sizeup.LOOKUP, sizeup.SERIAL, sizeup.SCAN)}
    if None in found.values():
        return None
    smallest, *_, largest = sizes(chapter)
    printed = published.table("explorations_sizeup_averages").loc["average"]
    then = {what: math.log10(printed[b] / printed[a]) / 2 for what, (a, b) in {sizeup.LOOKUP: ("q1", "q2"), sizeup.SCAN: ("q3", "q4")}.items()}
    return narrate.Sentence(
        f"From {narrate.number(smallest)} to {narrate.number(largest)} tuples the time grows as a power of the size: of a lookup with exponent {narrate.interval(found[sizeup.LOOKUP])} (in print {then[sizeup.LOOKUP]:.2f}), "
        f"of a scan in one process with {narrate.interval(found[sizeup.SERIAL])}, of a scan as the planner likes it with {narrate.interval(found[sizeup.SCAN])} (in print {then[sizeup.SCAN]:.2f})."
    )


def disk_or_memory(chapter: Chapter) -> narrate.Sentence | None:
    """How much of the print's factor the step from memory to disk explains."""
    found = sizeup.rates(chapter)
    if found is None:
        return None
    printed = published.table("explorations_sizeup_averages").loc["average"]
    factor = printed["q4"] / printed["q3"] / 100
    here = sizeup.within(chapter, "cold scan, large", "warm scan, large")
    pages = heap_pages(TUPLES["tenmiltup"])
    said = (
        f"In print a hundred times the data took {narrate.number(100 * factor, 0)} times as long, {narrate.number(factor, 1)} times more than in proportion. "
        f"The ten million tuples fill {narrate.number(megabytes(pages), 0)} MB of a machine with {published.cell('explorations_setup', 'memory', 'value'):g} GB; the slides' time for them is that of a slow network disk. "
    )
    return narrate.Sentence(said) + narrate.ratio_sentence(here, "time", "a scan of the largest relation right after a restart with nothing cached", "the next one")


def wait_for_planner(chapter: Chapter) -> narrate.Sentence | None:
    """The second query of a session."""
    second = sizeup.planning_over_execution(chapter, "second")
    if second is None:
        return None
    return narrate.Sentence(f"For the session's second such query, with the catalogs' contents at hand, planning takes {narrate.interval(second)} times as long as execution.")


def flipped(grid: pd.DataFrame | None) -> narrate.Sentence | None:
    """Whether memory alone can change the join, and where."""
    found = joins.flips(grid)
    if found is None:
        return None
    if found.empty:
        return narrate.Sentence("Nowhere in the grid does work_mem alone change the join that is picked.")
    combinations = grid.groupby(["small", "large", "attributes", "multiplier"]).ngroups
    row = found.iloc[-1]
    return narrate.Sentence(
        f"In {narrate.number(len(found))} of {narrate.count(combinations, 'combination')} of sizes, attributes and hash_mem_multiplier, work_mem alone changes the join. "
        f"With {name(row['small'])} and {name(row['large'])} on {row['attributes']}, the planner picks: {row['picked']}."
    )


def multiplied(found: pd.DataFrame | None) -> narrate.Sentence:
    """What hash_mem_multiplier does to the pick, setting by setting."""
    if found is None:
        return narrate.Sentence("This release has no hash_mem_multiplier: hashing may take what work_mem says.")
    picks = {multiplier: joins.over_memory(rows) for multiplier, rows in found.groupby("multiplier")}
    each = ". ".join(f"With {multiplier}: {picked}" for multiplier, picked in picks.items())
    moved = "it moves the settings of work_mem at which the pick changes" if len(set(picks.values())) > 1 else "it doesn't change what is picked at any work_mem"
    first = found.iloc[0]
    return narrate.Sentence(f"For {name(first['small'])} with {name(first['large'])} on {first['attributes']}, {moved}. {each}.")


def why_not(grid: pd.DataFrame | None) -> narrate.Sentence | None:
    """Why the print's range shows no change: the distance between the two costs."""
    if grid is None:
        return None
    own = joins.printed_range(grid).set_index("work_mem")
    gap = own[joins.MERGE] / own[joins.HASH]
    return narrate.Sentence(
        f"For {name(SMALL)} with {name(LARGE)} memory does change what the hash join costs, from {narrate.number(own[joins.HASH].iloc[0], 0)} with {own.index[0]} to {narrate.number(own[joins.HASH].iloc[-1], 0)} with {own.index[-1]}. "
        f"But the merge join has to sort both relations, and costs {narrate.number(gap.min(), 2)} to {narrate.number(gap.max(), 2)} times as much at every setting."
    )


def shared_memory(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """When parallel hash puts the memory of all its processes together."""
    if found is None:
        return None
    wide = found.pivot(index="work_mem", columns="parallel_hash", values="batches").reindex(found["work_mem"].unique())
    fewer, same = wide[wide["on"] < wide["off"]], wide[(wide["on"] >= wide["off"]) & (wide["off"] > 1)]
    if fewer.empty:
        return narrate.Sentence("At none of these settings does parallel hash need fewer batches than one process.")
    said = f"With {' and '.join(fewer.index)} parallel hash needs fewer batches than one process"
    if same.empty:
        return narrate.Sentence(f"{said}, wherever one process needs several.")
    why = ": it puts the memory of its processes together if the whole table fits then, and else plans with the memory of one" if (fewer["on"] == 1).all() else ""
    return narrate.Sentence(f"{said}, with {' and '.join(same.index)} no fewer{why}.")


def join_regret(chapter: Chapter) -> narrate.Sentence | None:
    """Which join is faster, by work_mem."""
    found = {work_mem: joins.merge_over_hash(chapter, work_mem) for work_mem in joins.WORK_MEM}
    if None in found.values():
        return None
    each = ", ".join(f"{narrate.interval(ratio)} with {work_mem}" for work_mem, ratio in found.items())
    return narrate.Sentence(f"The merge join's time over the hash join's is {each}.")


def between_releases(chapter: Chapter) -> narrate.Sentence | None:
    """Each statement's time on one release over that on the other."""
    found = releases.ratios(chapter)
    if found is None:
        return None
    return narrate.Sentence(" ".join(narrate.ratio_sentence(ratio, f"time of “{words}”", one, base) for words, (ratio, one, base) in found.items()))
