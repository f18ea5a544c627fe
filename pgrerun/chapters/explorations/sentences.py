"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import evidence, relations
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    clock_sweep,
    planner,
    size_up,
    two_releases,
)
from pgrerun.page import narrate, tables
from pgrerun.record import printed, statistics
from pgrerun.record.printed.explorations import TUPLES, heap_pages, megabytes


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor, from two variants of Experiment 2 whose plan doesn't use what they vary."""
    times = chapter.table("grouping", "time")
    one, other = (
        times[planner.Grouping(planner.UNIQUE, planner.ORDERED, work_mem).name]
        for work_mem in planner.ORDERED_WORK_MEM
    )
    return narrate.noise(statistics.noise_floor(one, other))


def printed_intervals() -> narrate.Sentence:
    """What the slides' own readings can tell, pool by pool."""
    parts = []
    for pool, row in evidence.printed_slowdowns().iterrows():
        interval = statistics.Interval(row["median"], row["low"], row["high"], 5)
        includes = "includes" if row["low"] <= 1 <= row["high"] else "excludes"
        said = f"{buffer_pool.LABELS[pool]}: {narrate.interval(interval)}"
        parts.append(f"{said}, which {includes} no effect")
    return narrate.Sentence(
        "Taken as pairs, the slides' five rounds give these median slow-downs with their ranges."
        f" {'; '.join(parts)}."
    )


def ring(chapter: Chapter, written: pd.DataFrame) -> narrate.Sentence:
    """How much of the reading is writing, by pool, and what is left of the reader's pages."""
    counted = buffer_pool.timed(chapter, at_least=4)
    below = [pool for pool in counted if buffer_pool.SHARES[pool] < 4]
    rows = [evidence.pick(written, pool, buffer_pool.DIRTY) for pool in below]
    pages, in_print = heap_pages(chapter.parameters.tuples), heap_pages(TUPLES["miltup"])
    left = [row["left"] for row in rows]
    said = (
        f"In pools of {below[0].split(' ')[0]} to {below[-1].split(' ')[0]} times the relation the"
        f" reader writes {_range([row['written'] for row in rows])} for the {narrate.number(pages)}"
        f" that it reads, and afterwards {_range(left)} of its relation"
        f" {'is' if max(left) == 1 else 'are'} in the pool"
    )
    if max(left) > pages / 2:
        return narrate.Sentence(f"{said}.")
    return narrate.Sentence(
        f"{said}: a scan of more than a quarter of the pool gets a small ring of buffers and keeps"
        " reusing them. It pays for making its ring clean and for nothing else. In release 11 such"
        f" a ring had {narrate.number(buffer_pool.RING_OF_11)} pages, whatever the pool; of the"
        f" {narrate.number(in_print)} pages of the slides' relation that is"
        f" {100 * buffer_pool.RING_OF_11 / in_print:.1f} %."
    )


def _range(counts: list[int]) -> str:
    """Of pages: "32 pages", or "20 to 32 pages"."""
    least, most = min(counts), narrate.count(max(counts), "page")
    return most if least == max(counts) else f"{narrate.number(least)} to {most}"


def without_ring(beside: pd.DataFrame) -> narrate.Sentence:
    """What the reader without a ring pays."""
    own = beside[
        (beside["reader"] == buffer_pool.WITHOUT) & (beside["variant"] == buffer_pool.DIRTY)
    ].iloc[0]
    return narrate.Sentence(
        f"Without a ring, {narrate.number(own['written'])} of the {narrate.number(own['read'])}"
        " pages that are read cost a write."
    )


def passes_of_the_hand(found: clock_sweep.Survivors) -> narrate.Sentence:
    """How many uses the hand takes from a page while one pool is read, and why it isn't one."""
    often = found.pages[
        (found.pages["flood"] == clock_sweep.CROWD) & (found.pages["history"] == clock_sweep.OFTEN)
    ]
    started, spent = often["usage"].iloc[0], often[often["usage"] == 0]["pages_read"].min()
    said = (
        f"A page that was read several times has a usage count of {narrate.number(started, 1)} when"
        " the flood of many small relations begins"
    )
    if pd.isna(spent):
        return narrate.Sentence(f"{said}, and some of it is left at the end.")
    said += f", and of zero when {narrate.number(spent)} pools of them have been read"
    if started / spent < 1.5:
        return narrate.Sentence(f"{said}.")
    return narrate.Sentence(
        f"{said}: it loses {narrate.number(started / spent, 1)} for each pool. The hand has to go"
        " round twice to fill a pool with pages that are used once, first to take that one use"
        " from the pages that are there, and then to take their buffers."
    )


def first_reader(found: pd.DataFrame) -> narrate.Sentence:
    """What the updated relation's first reader writes."""
    first, second = found.iloc[0], found.iloc[1]
    return narrate.Sentence(
        f"The first to read the updated relation makes {narrate.count(first['dirtied'], 'page')}"
        f" dirty and writes {narrate.count(first['wal_fpi'], 'full page image')} to the WAL"
        f" ({narrate.number(first['wal_bytes'] / 2**20, 1)} MB); the second makes"
        f" {narrate.count(second['dirtied'], 'page')} dirty. A larger pool changes nothing about"
        " that."
    )


def checkpoint_suspected(wal: pd.DataFrame) -> narrate.Sentence:
    """How many of the slides' updates would have made a checkpoint due."""
    fresh, later = wal["bytes per tuple"]
    first, each = (TUPLES["miltup"] * x / 2**20 for x in (fresh, later))
    # A checkpoint begins when the WAL since the last one reaches max_wal_size
    # / (1 + checkpoint_completion_target), by default 1 GB and 0.5 in release 11.
    due = 1024 / 1.5
    updates = max(1, 1 + -(-(due - first) // each))
    return narrate.Sentence(
        f"By the WAL that an update writes here ({narrate.number(fresh)} bytes per tuple right"
        f" after a checkpoint, {narrate.number(later)} later), one update of the slides' million"
        f" tuples writes {narrate.number(first, 0)} MB, and the next ones {narrate.number(each, 0)}"
        " MB each. With the default settings of release 11 a checkpoint is due after"
        f" {narrate.number(due, 0)} MB: within {narrate.count(updates, 'update')}. So a checkpoint"
        f" is likely to have run beside {'each' if updates == 1 else 'some'} of the five"
        f" rounds{'' if updates == 1 else ', and not beside others'}."
    )


def spilled(spills: pd.DataFrame) -> narrate.Sentence:
    """What becomes of hashing when the table doesn't fit."""
    small, large = spills.iloc[0], spills.iloc[-1]
    return narrate.Sentence(
        f"Forced to hash with {small['work_mem']}, it works in"
        f" {narrate.count(small['batches'], 'batch', 'batches')} and puts"
        f" {narrate.number(small['disk_kb'] / 1024, 1)} MB on disk; with {large['work_mem']} it"
        f" takes {narrate.number(large['memory_kb'] / 1024, 1)} MB of memory in"
        f" {narrate.count(large['batches'], 'batch', 'batches')}."
    )


def picked_now(plans: pd.DataFrame) -> narrate.Sentence:
    """What is picked at the slides' largest work_mem, from where on, and after a VACUUM."""
    now = planner.picked(plans, "30MB")
    vacuumed = planner.picked(plans, "30MB", planner.VACUUMED)
    hashing = [
        work_mem
        for work_mem in planner.GRID
        if planner.picked(plans, work_mem).startswith("HashAggregate")
    ]
    since = f"from {hashing[0]} on" if hashing else "at no setting of the grid"
    if vacuumed == now:
        return narrate.Sentence(
            f"With 30MB the planner picks {now}, before a VACUUM and after it; hashing is picked"
            f" {since}."
        )
    return narrate.Sentence(
        f"With 30MB the planner picks {now}; hashing is picked {since}. After a VACUUM it picks"
        f" {vacuumed}, since an index-only scan then needs no visit to the heap: what looked like"
        " an effect of memory rests on a relation that was never vacuumed."
    )


def exponents(chapter: Chapter) -> narrate.Sentence:
    """The exponents of growth, for lookups and scans."""
    whats = (size_up.LOOKUP, size_up.SERIAL, size_up.SCAN)
    found = {what: evidence.exponent(chapter, what) for what in whats}
    smallest, *_, largest = relations.sizes(chapter)
    in_print = printed.table("explorations_sizeup_averages").loc["average"]
    then = {
        what: math.log10(in_print[b] / in_print[a]) / 2
        for what, (a, b) in {size_up.LOOKUP: ("q1", "q2"), size_up.SCAN: ("q3", "q4")}.items()
    }
    return narrate.Sentence(
        f"From {narrate.number(smallest)} to {narrate.number(largest)} tuples the time grows as a"
        f" power of the size: of a lookup with exponent {narrate.interval(found[size_up.LOOKUP])}"
        f" (printed: {then[size_up.LOOKUP]:.2f}), of a scan in one process with"
        f" {narrate.interval(found[size_up.SERIAL])}, of a scan as the planner likes it with"
        f" {narrate.interval(found[size_up.SCAN])} (printed: {then[size_up.SCAN]:.2f})."
    )


def disk_or_memory(chapter: Chapter) -> narrate.Sentence:
    """How much of the printed factor the step from memory to disk explains."""
    in_print = printed.table("explorations_sizeup_averages").loc["average"]
    factor = in_print["q4"] / in_print["q3"] / 100
    here = evidence.of_metrics(chapter, "cold", "cold scan, large", "warm scan, large")
    pages = heap_pages(TUPLES["tenmiltup"])
    said = (
        f"On the slides a hundred times the data takes {narrate.number(100 * factor, 0)} times as"
        f" long, {narrate.number(factor, 1)} times more than in proportion. The ten million tuples"
        f" fill {narrate.number(megabytes(pages), 0)} MB of a machine with"
        f" {printed.cell('explorations_setup', 'memory', 'value'):g} GB; the slides' time for them"
        " is that of a slow network disk. "
    )
    return narrate.Sentence(said) + narrate.ratio_sentence(
        here,
        "time",
        "a scan of the largest relation right after a restart with nothing cached",
        "the next one",
    )


def second_query(chapter: Chapter) -> narrate.Sentence:
    """The second query of a session."""
    second = evidence.of_metrics(chapter, "planning", "second planning", "second execution")
    return narrate.Sentence(
        "For the session's second such query, with the catalogs' contents at hand, planning takes"
        f" {narrate.interval(second)} times as long as execution."
    )


def plan_changes(grid: pd.DataFrame) -> narrate.Sentence:
    """Whether memory alone can change the join, and where."""
    found = planner.plan_changes(grid)
    if found.empty:
        return narrate.Sentence(
            "Nowhere in the grid does work_mem alone change the join that is picked."
        )
    combinations, row = grid.groupby(planner.JOINED).ngroups, found.iloc[-1]
    return narrate.Sentence(
        f"In {narrate.number(len(found))} of {narrate.count(combinations, 'combination')} of sizes,"
        " attributes and hash_mem_multiplier, work_mem alone changes the join. With"
        f" {relations.name(row['small'])} and {relations.name(row['large'])} on"
        f" {row['attributes']}, the planner picks: {row['picked']}."
    )


def why_not(grid: pd.DataFrame) -> narrate.Sentence:
    """Why the settings of the slides show no change: the distance between the two costs."""
    own = planner.printed_range(grid).set_index("work_mem")
    gap = own[planner.MERGE] / own[planner.HASH]
    return narrate.Sentence(
        "For hundredktup with miltup memory does change what the hash join costs, from"
        f" {narrate.number(own[planner.HASH].iloc[0], 0)} with {own.index[0]} to"
        f" {narrate.number(own[planner.HASH].iloc[-1], 0)} with {own.index[-1]}. But the merge join"
        f" has to sort both relations, and costs {narrate.number(gap.min(), 2)} to"
        f" {narrate.number(gap.max(), 2)} times as much at every setting."
    )


def shared_memory(found: pd.DataFrame) -> narrate.Sentence:
    """When parallel hash puts the memory of all its processes together."""
    wide = found.pivot(index="work_mem", columns="parallel_hash", values="batches")
    wide = wide.reindex(found["work_mem"].unique())
    fewer = wide[wide["on"] < wide["off"]]
    same = wide[(wide["on"] >= wide["off"]) & (wide["off"] > 1)]
    if fewer.empty:
        return narrate.Sentence(
            "At none of these settings does parallel hash need fewer batches than one process."
        )
    said = f"With {' and '.join(fewer.index)} parallel hash needs fewer batches than one process"
    if same.empty:
        return narrate.Sentence(f"{said}, wherever one process needs several.")
    why = (
        ": it puts the memory of its processes together if the whole table fits then, and else"
        " plans with the memory of one"
        if (fewer["on"] == 1).all()
        else ""
    )
    return narrate.Sentence(f"{said}, with {' and '.join(same.index)} no fewer{why}.")


def between_releases(chapter: Chapter) -> tables.Table:
    """Each statement's time on one release over that on the other, a row per statement."""
    statements = [variant.split(": ")[0] for variant in chapter.table("releases", "time")]
    under_test, beside = (release.name for release in two_releases.both(chapter))
    rows = []
    for words in dict.fromkeys(statements):
        ratio = chapter.ratio("releases", "time", f"{words}: {under_test}", f"{words}: {beside}")
        rows.append((words, narrate.interval(ratio, against=(1,)), ratio.n))
    frame = pd.DataFrame(rows, columns=["statement", "time, relative", "pairs"])
    caption = f"Time on {under_test} over that on {beside}, with its interval"
    return tables.Table(frame, caption)
