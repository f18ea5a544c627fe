"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.explorations import grouping as groups
from pgrerun.chapters.explorations import joins, pools, sizeup
from pgrerun.chapters.explorations.clock import CROWD, HISTORIES, RING, Survivors
from pgrerun.chapters.explorations.dirt import MEANWHILE
from pgrerun.chapters.explorations.pools import CLEAN, DIRTY, WAITED
from pgrerun.chapters.explorations.relations import LARGE, SMALL, name
from pgrerun.published.explorations import POOLS, TUPLES

_WHEN = {"clean": CLEAN, "dirty": DIRTY}


def the_print() -> charts.Figure:
    """Every reading of the slides' first experiment."""
    rounds = published.table("explorations_pool_rounds")
    rows = [
        charts.row(_WHEN[row.group], "printed", getattr(row, pool), panel=f"pool of {pools.LABELS[pool]}", block=row.number)
        for pool in POOLS for row in rounds.itertuples()
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    medians = [charts.row(label, "printed", statistics.median(group["value"]), panel=panel) for (panel, label), group in frame.groupby(["panel", "label"], sort=False)]
    return charts.observations(
        frame,
        question="Does a large update slow down the next reader?",
        caption="Every reading that the slides print for Experiment 1: time to read miltup1 after miltup2 was read, and after it was updated. "
        "The line is the range of five readings with their median.",
        description=narrate.described(pd.DataFrame(medians)),
        quantity="time",
        unit="ms",
        facet="panel",
        log=True,
        name="explorations-print",
    )


def slowdowns(chapter: Chapter) -> charts.Figure | None:
    """The slow-down by size of the pool: the slides' rounds as pairs, and what was measured."""
    printed, runs = pools.printed_slowdowns(), chapter.by_provenance("pools")
    if not runs:
        return None
    rows = []
    for label in pools.pools():
        for pool in POOLS:
            if label == pools.printed_pool(pool):
                then = printed.loc[pool]
                rows.append(charts.row(label, "printed", then["median"], low=then["low"], high=then["high"]))
        for kind, frame in runs:
            times = wide(frame, "time")
            if f"{label}: {DIRTY}" in times:
                rows.append(charts.row(label, kind, statistics.ratio(times[f"{label}: {DIRTY}"], times[f"{label}: {CLEAN}"])))
    frame = pd.DataFrame(rows).assign(label=lambda f: f["label"].replace({"1.00": "1.00 (its size)"}))
    return charts.compare_to_print(
        frame,
        question="By how much does a large update slow down the next reader, and does the size of the pool matter?",
        caption="Time to read a relation after another was updated, over the time after the other was only read; by size of the buffer pool, as a multiple of the relation's pages. "
        "The slides' sizes in MB stand where they belong by the pages of their relation. The print's marks are the medians of its five pairs, with their range.",
        description=narrate.described(frame),
        quantity="slow-down",
        unit="",
        reference=1,
        reference_label="none",
        log=True,
        name="explorations-slowdown",
    )


WRITTEN, PLAIN, THERE = "read, one written first", "read into a clean buffer", "found in the pool"


def who_pays(written: pd.DataFrame | None) -> charts.Figure | None:
    """What the reader does for each page, by pool and by what came before."""
    if written is None:
        return None
    rows = []
    for row in written.itertuples():
        parts = {WRITTEN: min(row.written, row.read), PLAIN: max(0, row.read - row.written), THERE: row.hit}
        rows += [{"label": row.pool, "pages": what, "value": pages, "kind": "measured", "panel": row.arm} for what, pages in parts.items() if pages]
    frame = pd.DataFrame(rows)
    segments = [WRITTEN, PLAIN, THERE]
    frame = frame.sort_values("pages", key=lambda column: column.map(segments.index), kind="stable")
    return charts.stacked_pages(
        frame.reset_index(drop=True),
        question="For how many of its pages does the reader have to write a dirty one first?",
        caption="Pages of the relation that is read, by what it took to get them, with the background writer off. Bars are pools, as multiples of the relation.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="pages",
        facet="panel",
        name="explorations-written",
    )


def clock(found: Survivors | None) -> charts.Figure | None:
    """Survival of pages in the pool."""
    if found is None:
        return None
    kept = found.pages
    frame = pd.DataFrame(
        {"x": kept["pages_read"], "value": kept["usage"].where(kept["kept"] > 0), "kind": "measured", "series": kept["history"], "panel": "flood: " + kept["flood"].map({RING: "one large scan", CROWD: "many small"})}
    ).dropna()
    words = frame.assign(label=frame["series"] + " after " + frame["x"].astype(str))
    return charts.lines(
        frame.reset_index(drop=True),
        question="How long do pages that nobody asks for stay in the pool?",
        caption="Mean usage count of two small relations' pages while other relations are read. Where a line ends, the last of its pages was displaced.",
        description=narrate.described(words),
        x_quantity="pages read since",
        x_unit="pools",
        quantity="usage count",
        unit="",
        facet="panel",
        zero=True,
        name="explorations-clock",
    )


def stays(found: pd.DataFrame | None) -> charts.Figure | None:
    """How long pages stay, on the server and under simulated strategies."""
    if found is None:
        return None
    frame = pd.DataFrame([charts.row(row["who"], row["kind"], row[history], panel=history) for history in HISTORIES for _, row in found.iterrows()])
    return charts.compare_to_print(
        frame,
        question="Would another strategy have kept the same pages?",
        caption="Pages read from many small relations, in pools, until half of a watched relation's pages are displaced: counted on the server, and for the same requests under two simulated strategies. Each simulation begins with the pages and usage counts that the server's pool held.",
        description=narrate.described(frame),
        quantity="pages read",
        unit="pools",
        facet="panel",
        zero=True,
        name="explorations-strategies",
    )


_PRINTED_WAYS = {groups.HASHED: ("30MB",), groups.ORDERED: ("64kB", "4MB")}
"""The plans that the slides timed for the unique attribute."""


def grouping_times(chapter: Chapter) -> charts.Figure | None:
    """Times of the groupings, by plan and work_mem."""
    runs, printed = chapter.by_provenance("grouping"), published.table("explorations_grouping_averages").loc["average"]
    if not runs:
        return None
    rows = []
    panels = ((groups.UNIQUE, "q1", groups.HASHED, groups.WORK_MEM), (groups.UNIQUE, "q1", groups.ORDERED, groups.IDLE), (groups.TWENTY, "q2", groups.PICKED, groups.WORK_MEM))
    for attribute, query, way, settings in panels:
        panel = attribute if way == groups.PICKED else f"{attribute}, {way}"
        for work_mem in settings:
            if work_mem in _PRINTED_WAYS.get(way, groups.WORK_MEM):
                rows.append(charts.row(work_mem, "printed", printed[f"{query}_{work_mem.lower()}"], panel=panel))
            rows += [charts.row(work_mem, kind, statistics.median(wide(frame, "time")[groups.arm(attribute, way, work_mem)]), panel=panel) for kind, frame in runs]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What is more memory worth to a grouping, and which plan is the fast one?",
        caption="Time of CREATE TEMP TABLE AS with the grouping, by plan and work_mem. The slides' averages stand with the plans that they were measured on.",
        description=narrate.described(frame),
        quantity="time",
        unit="ms",
        facet="panel",
        log=True,
        name="explorations-grouping",
    )


def spilling(spills: pd.DataFrame | None) -> charts.Figure | None:
    """What hashing does with less memory than it needs."""
    if spills is None or spills["batches"].isna().all():
        return None
    kb = spills["work_mem"].map(_kilobytes)
    columns = {"memory_kb": "memory used (MB)", "disk_kb": "written to disk (MB)"}
    frame = pd.concat([pd.DataFrame({"x": kb / 1024, "value": spills[c].astype(float) / 1024, "kind": "measured", "panel": words}) for c, words in columns.items()])
    return charts.lines(
        frame.reset_index(drop=True),
        question="What does hash aggregation do when its table doesn't fit?",
        caption="A hundred thousand groups, hashed with growing work_mem: peak memory, and what goes to disk in batches.",
        description=narrate.described(frame.assign(label=frame["x"].map(lambda x: f"{x:g} MB"))),
        x_quantity="work_mem",
        x_unit="MB",
        quantity="size",
        unit="MB",
        facet="panel",
        own_scales=True,
        log_x=True,
        zero=True,
        name="explorations-spilling",
    )


def _kilobytes(setting: str) -> float:
    return float(setting[:-2]) * (1024 if setting.endswith("MB") else 1)


def growing(chapter: Chapter) -> charts.Figure | None:
    """Time over size: lookups and scans."""
    runs, printed = chapter.by_provenance("size-up"), published.table("explorations_sizeup_averages").loc["average"]
    if not runs:
        return None
    rows = [
        {"x": TUPLES[relation], "value": printed[query], "kind": "printed", "series": what}
        for what, queries in ((sizeup.LOOKUP, ("q1", "q2")), (sizeup.SCAN, ("q3", "q4")))
        for query, relation in zip(queries, ("hundredktup", "tenmiltup"))
    ]
    for kind, frame in runs:
        times = wide(frame, "time")
        for arm in times:
            what, _, tuples = arm.removesuffix(" tuples").rpartition(", ")
            if what == sizeup.SERIAL:  # too close to the other scan to be told apart
                continue
            median = statistics.median(times[arm])
            rows.append({"x": int(tuples), "value": median.estimate, "low": median.low, "high": median.high, "kind": kind, "series": what})
    frame = pd.DataFrame(rows).sort_values("x", kind="stable").reset_index(drop=True)
    return charts.lines(
        frame,
        question="How does the time of one query grow with the relation?",
        caption="A lookup by the key, and a scan for one tuple as the planner likes it. On these axes a time proportional to the size is a straight line that climbs one decade per decade.",
        description=narrate.described(frame.assign(label=frame["series"] + " of " + frame["x"].map("{:,}".format))),
        x_quantity="size",
        x_unit="tuples",
        quantity="time",
        unit="ms",
        log_x=True,
        log_y=True,
        name="explorations-sizeup",
    )


def _merge_over_hash(chosen: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Rows of `joins.grid`, by panel, as a chart's frame of the merge join's cost over the hash join's."""
    return pd.concat(
        pd.DataFrame({"x": rows["work_mem"].map(_kilobytes) / 1024, "value": rows[joins.MERGE] / rows[joins.HASH], "kind": "measured", "panel": panel})
        for panel, rows in chosen
    ).reset_index(drop=True)  # fmt: skip


def costs(grid: pd.DataFrame | None) -> charts.Figure | None:
    """The merge join's cost over the hash join's by work_mem, for the slides' pair and for one where memory decides."""
    if grid is None:
        return None
    own = joins.printed_range(grid)
    chosen = [(f"{name(SMALL)}, {name(LARGE)}", own)]
    flipped = joins.flips(grid)
    if not flipped.empty:
        key = flipped.iloc[-1]
        same = (grid["small"] == key["small"]) & (grid["large"] == key["large"]) & (grid["attributes"] == key["attributes"]) & (grid["multiplier"] == key["multiplier"])
        chosen.append((f"{name(key['small'])}, {name(key['large'])}", grid[same]))
    frame = _merge_over_hash(chosen)
    titles = "; ".join(f"{panel}: {rows['attributes'].iloc[0]}, hash_mem_multiplier {rows['multiplier'].iloc[0]}" for panel, rows in chosen)
    return charts.lines(
        frame,
        question="Does memory enter the choice between hash join and merge join?",
        caption=f"The planner's cost of the merge join over that of the hash join, by work_mem ({titles}). The cheaper one is picked: the hash join above 1, the merge join below.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:g} MB".format))),
        x_quantity="work_mem",
        x_unit="MB",
        quantity="cost of merge join / hash join",
        unit="",
        facet="panel",
        own_scales=True,
        log_x=True,
        name="explorations-costs",
    )


def multipliers(found: pd.DataFrame | None) -> charts.Figure | None:
    """The merge join's cost over the hash join's by work_mem, for each hash_mem_multiplier."""
    if found is None:
        return None
    frame = _merge_over_hash([(f"hash_mem_multiplier {multiplier}", rows) for multiplier, rows in found.groupby("multiplier")])
    first = found.iloc[0]
    return charts.lines(
        frame,
        question="What does hash_mem_multiplier move?",
        caption=f"The planner's cost of the merge join of {name(first['small'])} and {name(first['large'])} on {first['attributes']} over that of the hash join, by work_mem. Above 1 the hash join is picked, below the merge join.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:g} MB".format))),
        x_quantity="work_mem",
        x_unit="MB",
        quantity="cost of merge join / hash join",
        unit="",
        facet="panel",
        log_x=True,
        name="explorations-multipliers",
    )


def releases(chapter: Chapter) -> charts.Figure | None:
    """Times of the slides' statements on two releases."""
    times = chapter.table("releases", "time")
    if times.empty:
        return None
    labels = [arm.split(": ") for arm in times]
    frame = pd.DataFrame([charts.row(release, "measured", statistics.median(times[f"{words}: {release}"]), panel=words) for words, release in labels])
    return charts.compare_to_print(
        frame,
        question="What have the releases in between changed?",
        caption="Time of the slides' statements on two releases on this machine, measured in turns.",
        description=narrate.described(frame),
        quantity="time",
        unit="ms",
        facet="panel",
        own_scales=True,
        zero=True,
        name="explorations-releases",
    )


def join_times(chapter: Chapter) -> charts.Figure | None:
    """Times of both joins by work_mem."""
    runs = chapter.by_provenance("joins")
    if not runs:
        return None
    rows = [
        charts.row(work_mem, kind, statistics.median(wide(frame, "time")[joins.arm(how, work_mem)]), panel=how)
        for how in (joins.HASH, joins.MERGE) for work_mem in joins.WORK_MEM for kind, frame in runs
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does memory do to the time of the join?",
        caption=f"Time of a join of {' and '.join(map(name, joins.timed_pair(chapter)))} on an attribute without an index, with little and with ample work_mem; one process.",
        description=narrate.described(frame),
        quantity="time",
        unit="ms",
        facet="panel",
        zero=True,
        name="explorations-joins",
    )


def waits(waiting: pd.DataFrame | None) -> charts.Figure | None:
    """Dirty pages and the reader's writes after an update, a delay, and a checkpoint."""
    if waiting is None:
        return None
    panels = {"dirty": "dirty pages left", "background_writer": "by background writer", "checkpointer": "by checkpointer", "reader": "written by the reader"}
    frame = pd.DataFrame([charts.row(row.event, "measured", getattr(row, column), panel=panel) for column, panel in panels.items() for row in waiting.itertuples() if row.event != MEANWHILE])
    return charts.compare_to_print(
        frame,
        question="Does waiting help, and who does the work?",
        caption="After an update of every tuple: pages of the updated relation that are still dirty, and pages written by whom, until and by a read that comes at once, after a delay, or after a checkpoint.",
        description=narrate.described(frame),
        quantity="pages",
        unit="",
        facet="panel",
        own_scales=True,
        zero=True,
        name="explorations-waiting",
    )


def fading(waiting: pd.DataFrame | None) -> charts.Figure | None:
    """Dirty pages over time while nothing happens, all and those that the hand could take at once."""
    if waiting is None:
        return None
    seen = waiting[waiting["event"].isin([MEANWHILE, WAITED])]
    series = {"dirty": "dirty", "unused": "of usage count 0"}
    frame = pd.DataFrame([{"x": row.seconds, "value": getattr(row, column), "kind": "measured", "series": words} for column, words in series.items() for row in seen.itertuples()])
    return charts.lines(
        frame,
        question="What becomes of dirty pages when nobody asks for a buffer?",
        caption="Dirty pages of the updated relation in the pool from the end of the update on, and those of them that nobody has used since the clock's hand came by.",
        description=narrate.described(frame.assign(label=frame["series"] + " after " + frame["x"].map(narrate.number) + " s")),
        x_quantity="time since the update",
        x_unit="s",
        quantity="pages",
        unit="",
        zero=True,
        name="explorations-fading",
    )
