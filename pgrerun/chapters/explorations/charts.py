"""The charts of the chapter: frames from the print, the published run and this run, and words."""

import math
from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import evidence, relations
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    clock_sweep,
    planner,
    size_up,
    slow_disk,
)
from pgrerun.page import charts, narrate
from pgrerun.record import claims, printed
from pgrerun.record.claims import MARGIN
from pgrerun.record.printed.explorations import POOLS, TUPLES
from pgrerun.record.statistics import Interval

# ---- Experiment 1


def printed_readings() -> charts.Figure:
    """Every reading of the slides' first experiment."""
    rounds = printed.table("explorations_pool_rounds")
    readings = rounds.melt(["group", "number"], list(POOLS), "pool")
    frame = pd.DataFrame(
        {
            "label": readings["group"].map(
                {"clean": buffer_pool.CLEAN, "dirty": buffer_pool.DIRTY}
            ),
            "kind": "printed",
            "value": readings["value"],
            "panel": "pool of " + readings["pool"].map(buffer_pool.LABELS),
            "block": readings["number"],
        }
    )
    return charts.observations(
        frame,
        charts.Words(
            question="Does a large update slow down the next reader?",
            caption=(
                "Every reading that the slides print for Experiment 1: time to read miltup1 after"
                " miltup2 was read, and after it was updated. The line is the range of five"
                " readings with their median."
            ),
            name="explorations-print",
            result=lambda _: _printed_medians(frame),
        ),
        charts.Axis("time", "ms", log=True),
    )


def _printed_medians(readings: pd.DataFrame) -> str:
    """The median reading after an update and otherwise, pool by pool."""
    told = []
    for pool, rows in readings.groupby("panel", sort=False):
        dirty, clean = (
            rows[rows["label"] == how]["value"].median()
            for how in (buffer_pool.DIRTY, buffer_pool.CLEAN)
        )
        told.append(f"{narrate.number(dirty)} and {narrate.number(clean)} ms in a {pool}")
    return f"The median readings after an update and after a read are {narrate.listed(told)}."


def slowdowns(chapter: Chapter) -> charts.Figure:
    """The slow-down by size of the pool: the slides' rounds as pairs, and what was measured."""
    pairs = {
        pool: (f"{pool}: {buffer_pool.DIRTY}", f"{pool}: {buffer_pool.CLEAN}")
        for pool in buffer_pool.SHARES
    }
    measured = chapter.ratios(buffer_pool.SWEEP, "time", pairs)
    frame = charts.together([_printed_slowdowns(), measured], order=buffer_pool.SHARES)
    return charts.compare(
        frame.replace({"label": {"1.00": "1.00 (its size)"}}),
        charts.Words(
            question=(
                "By how much does a large update slow down the next reader, and does the size of"
                " the pool matter?"
            ),
            caption=(
                "Time to read a relation after another was updated, over the time after the other"
                " was only read; by size of the buffer pool, as a multiple of the relation's pages."
                " The slides' sizes in MB stand where they belong by the pages of their relation."
                " The printed marks are the medians of the slides' five pairs, with their range."
            ),
            name="explorations-slowdown",
            result=_slower,
        ),
        charts.Axis("slow-down", log=True),
        reference=charts.Reference(1, "none"),
    )


def _slower(frame: pd.DataFrame) -> str:
    """In which pools there is a slow-down, by the intervals, in which there is none, and of which
    neither can be told. `frame` is that of a chart of slow-downs by pool.

    Either is as the claims have it: a slow-down is by more than expl-002's margin, none is less
    than what expl-004 counts as none.
    """
    rows = charts.own(frame)[1].dropna(subset=["low", "high"])
    if rows.empty:
        return "Too few pairs were timed for an interval."
    margin, none = 1 + _claim("expl-002").margin, 1 + _claim("expl-004").tolerance
    changed = rows[(rows["low"] > margin) | (rows["high"] < 1 / margin)]
    rest = rows.drop(changed.index)
    without, open_ = rest[rest["high"] < none], rest[rest["high"] >= none]
    said = []
    if len(changed):
        said.append(f"After an update the read takes {_times(changed)}.")
    if len(without):
        pools = "any pool" if len(without) == len(rows) else _pools(without)
        said.append(f"In {pools} no slow-down of {narrate.percent(none - 1)} is found.")
    if len(open_):
        of = "Whether there is a slow-down" + (
            "" if len(open_) == len(rows) else f" in {_pools(open_)}"
        )
        said.append(f"{of} can't be told: {_reach(open_)}.")
    return " ".join(said)


def _claim(name: str) -> claims.Claim:
    """A claim of the ledger, for what it declares."""
    return claims.ledger()[name]


def _pools(rows: pd.DataFrame) -> str:
    """ "a pool of 0.54 (128 MB)", "pools of 1.00 and 4.00"."""
    return f"{'a pool' if len(rows) == 1 else 'pools'} of {narrate.listed(rows['label'].tolist())}"


def _reach(rows: pd.DataFrame) -> str:
    """From where to where intervals reach, rounded outwards."""
    low = math.floor(100 * rows["low"].min()) / 100
    high = math.ceil(100 * rows["high"].max()) / 100
    which = "its interval reaches" if len(rows) == 1 else "the intervals reach"
    return f"{which} from {narrate.number(low, 2)} to {narrate.number(high, 2)} times"


def _times(rows: pd.DataFrame) -> str:
    """How many times as long it takes, pool by pool."""
    told = []
    for _, row in rows.iterrows():
        against = (1, 1 + _claim("expl-002").margin)
        times = narrate.interval(charts.value_of(row), against=against)
        told.append(f"{times} times as long in a pool of {row['label']}")
    return narrate.listed(told)


def reader_writes(written: pd.DataFrame) -> charts.Figure:
    """What the reader does for each page, by pool and by what came before.

    `written` is the frame of `experiments.buffer_pool.written`.
    """
    parts = {
        "read, one written first": written[["written", "read"]].min(axis=1),
        "read into a clean buffer": (written["read"] - written["written"]).clip(lower=0),
        "found in the pool": written["hit"],
    }
    frames = [
        pd.DataFrame(
            {
                "label": written["pool"],
                "part": part,
                "value": pages,
                "kind": "measured",
                "panel": written["variant"],
            }
        )[pages > 0]
        for part, pages in parts.items()
    ]
    return charts.stacked(
        frames,
        charts.Words(
            question="For how many of its pages does the reader have to write a dirty one first?",
            caption=(
                "Pages of the relation that is read, by what it took to get them, with the"
                " background writer off. Bars are pools, as multiples of the relation."
            ),
            name="explorations-written",
            result=lambda _: _written_first(written),
        ),
        charts.Axis("pages"),
    )


def _written_first(written: pd.DataFrame) -> str:
    """For how many of its pages the reader writes one first, after an update and otherwise."""
    after = written["variant"] == buffer_pool.DIRTY
    dirty, otherwise = written[after], written[~after]["written"].max()
    pages = narrate.number((dirty["read"] + dirty["hit"]).max())
    some = dirty[dirty["written"] > 0]
    if some.empty:
        said = f"After an update the reader does for none of its {pages} pages, whatever the pool"
    else:
        least, most = (narrate.number(some["written"].agg(end)) for end in ("min", "max"))
        many = most if least == most else f"{least} to {most}"
        said = f"After an update the reader does for {many} of its {pages} pages"
        if len(some) < len(dirty):
            none = narrate.listed(dirty[dirty["written"] == 0]["pool"].tolist())
            said += f", but in a pool of {none} for none"
    few = "none" if otherwise == 0 else f"{narrate.number(otherwise)} at most"
    return f"{said}; after a read, or an update and a checkpoint, for {few}."


def usage_counts(survivors: clock_sweep.Survivors) -> charts.Figure:
    """Survival of pages in the pool."""
    kept = survivors.pages
    frame = pd.DataFrame(
        {
            "x": kept["pages_read"],
            "value": kept["usage"].where(kept["kept"] > 0),
            "kind": "measured",
            "series": kept["history"],
            "panel": "flood: "
            + kept["flood"].map(
                {clock_sweep.RING: "one large scan", clock_sweep.CROWD: "many small"}
            ),
        }
    )
    return charts.lines(
        frame.dropna().reset_index(drop=True),
        charts.Words(
            question="How long do pages that nobody asks for stay in the pool?",
            caption=(
                "Mean usage count of two small relations' pages while other relations are read."
                " Where a line ends, the last of its pages was displaced."
            ),
            name="explorations-clock",
            result=lambda _: _survival(survivors),
        ),
        charts.Axis("pages read since", "pools"),
        charts.Axis("usage count", zero=True),
    )


def _survival(survivors: clock_sweep.Survivors) -> str:
    """When nothing is left of either relation, or how much is at the end, by flood."""
    told = []
    for flood, pages in survivors.pages.groupby("flood", sort=False):
        left = [f"{_left(rows)} of those {what}" for what, rows in pages.groupby("history")]
        told.append(f"in a flood of {flood}, {narrate.listed(left)}")
    return f"Of the pages that lay in the pool there remain, {'; '.join(told)}."


def _left(pages: pd.DataFrame) -> str:
    """What is left of one relation, and after how many pools."""
    gone = pages[pages["kept"] == 0]["pages_read"]
    if len(gone):
        return f"none after {narrate.number(gone.min(), 1)} pools"
    last = pages.loc[pages["pages_read"].idxmax()]
    return f"{narrate.percent(last['kept'])} after {narrate.number(last['pages_read'], 1)} pools"


def strategies(stays: pd.DataFrame) -> charts.Figure:
    """How long pages stay, on the server and under simulated strategies.

    `stays` is the frame of `evidence.stays`.
    """
    frame = stays.melt(["label", "kind"], list(clock_sweep.HISTORIES), "panel")
    return charts.compare(
        frame,
        charts.Words(
            question="Would another strategy have kept the same pages?",
            caption=(
                "Pages read from many small relations, in pools, until half of a watched relation's"
                " pages are displaced: counted on the server, and for the same requests under two"
                " simulated strategies. Each simulation begins with the pages and usage counts that"
                " the server's pool held."
            ),
            name="explorations-strategies",
            result=lambda _: _who_stays(stays),
        ),
        charts.Axis("pages read", "pools", zero=True),
    )


def _who_stays(stays: pd.DataFrame) -> str:
    """How long half of either relation's pages stay, by strategy."""
    told = []
    for _, row in stays.iterrows():
        often, once = (narrate.number(row[how], 1) for how in (clock_sweep.OFTEN, clock_sweep.ONCE))
        where = "under" if row["kind"] == "simulated" else "on"
        told.append(f"{often} and {once} pools {where} {row['label']}")
    return (
        f"Half of the pages {clock_sweep.OFTEN}, and of those {clock_sweep.ONCE}, stay for"
        f" {narrate.listed(told)}."
    )


def waiting(found: pd.DataFrame) -> charts.Figure:
    """Dirty pages and the reader's writes after an update, a delay, and a checkpoint.

    `found` is the frame of `experiments.buffer_pool.waiting`.
    """
    panels = {
        "dirty": "dirty pages left",
        "background_writer": "by background writer",
        "checkpointer": "by checkpointer",
        "reader": "written by the reader",
    }
    events = found.rename(columns={"event": "label"} | panels)
    frame = events.melt("label", list(panels.values()), "panel").assign(kind="measured")
    return charts.compare(
        frame,
        charts.Words(
            question="Does waiting help, and who does the work?",
            caption=(
                "After an update of every tuple: pages of the updated relation that are still"
                " dirty, and pages written by whom, until and by a read that comes at once, after a"
                " delay, or after a checkpoint."
            ),
            name="explorations-waiting",
            result=lambda _: _what_waiting_does(found),
        ),
        charts.Axis("pages", zero=True),
        own_scales=True,
    )


def _what_waiting_does(found: pd.DataFrame) -> str:
    """What the reader writes after a delay and at once, and who wrote how much more meanwhile."""
    at = found.set_index("event")
    once, waited = at.loc[buffer_pool.DIRTY], at.loc[buffer_pool.WAITED]
    now, later = (narrate.count(one["reader"], "page") for one in (once, waited))
    helps = "helps" if waited["reader"] < once["reader"] else "doesn't help"
    more = {
        who: waited[writer] - once[writer]
        for who, writer in (
            ("background writer", "background_writer"),
            ("checkpointer", "checkpointer"),
        )
    }
    said = [
        f"the {who} wrote "
        + (f"{narrate.count(abs(n), 'page')} {'more' if n > 0 else 'fewer'}" if n else "as many")
        for who, n in more.items()
    ]
    return (
        f"Waiting {helps}: the reader writes {now} at once and {later} after"
        f" {narrate.count(waited['seconds'], 'second')}. Compared with the read at once,"
        f" {narrate.listed(said)}."
    )


# ---- Experiment 2


def grouping_times(chapter: Chapter) -> charts.Figure:
    """Times of the groupings, by plan and work_mem."""
    in_print = printed.table("explorations_grouping_averages").loc["average"]
    unique, twenty, work_mem = planner.UNIQUE, planner.TWENTY, planner.WORK_MEM
    # panel, variants, and the printed cells that were measured with such a plan
    panels = [
        (f"{unique}, hashed", (unique, planner.HASHED), work_mem, {"30MB": "q1_30mb"}),
        (
            f"{unique}, in index order",
            (unique, planner.ORDERED),
            planner.ORDERED_WORK_MEM,
            {"64kB": "q1_64kb", "4MB": "q1_4mb"},
        ),
        (
            twenty,
            (twenty, planner.PICKED),
            work_mem,
            {"64kB": "q2_64kb", "4MB": "q2_4mb", "30MB": "q2_30mb"},
        ),
    ]
    frames = []
    for panel, plan, settings, cells in panels:
        labels = {planner.Grouping(*plan, work_mem).name: work_mem for work_mem in settings}
        then = {label: in_print[cell] for label, cell in cells.items()}
        parts = [*charts.rows(then, "printed"), chapter.medians("grouping", "time", labels)]
        frames.append(charts.together(parts, order=settings).assign(panel=panel))
    return charts.compare(
        frames,
        charts.Words(
            question="What is more memory worth to a grouping, and which plan is the fast one?",
            caption=(
                "Time of CREATE TEMP TABLE AS with the grouping, by plan and work_mem. The slides'"
                " averages stand with the plans that they were measured on. The index order, which"
                " needs no memory, is timed with the two smaller settings alone."
            ),
            name="explorations-grouping",
        ),
        charts.Axis("time", "ms", log=True),
    )


def spills(found: pd.DataFrame) -> charts.Figure:
    """What hashing does with less memory than it needs.

    `found` is the frame of `experiments.planner.spills`.
    """
    panels = {"memory_kb": "memory used", "disk_kb": "written to disk"}
    sized = found.assign(x=found["work_mem"].map(_megabytes)).rename(columns=panels)
    frame = sized.melt("x", list(panels.values()), "panel")
    return charts.lines(
        frame.assign(kind="measured", value=frame["value"].astype(float) / 1024),
        charts.Words(
            question="What does hash aggregation do when its table doesn't fit?",
            caption=(
                "A hundred thousand groups, hashed with growing work_mem: peak memory, and what"
                " goes to disk in batches."
            ),
            name="explorations-spilling",
        ),
        charts.Axis("work_mem", "MB", log=True),
        charts.Axis("size", "MB", zero=True),
        own_scales=True,
    )


def _megabytes(setting: str) -> float:
    """Of a setting in kB or MB."""
    return float(setting[:-2]) / (1 if setting.endswith("MB") else 1024)


# ---- Experiment 3


def size_up_times(chapter: Chapter) -> charts.Figure:
    """Time over size: lookups and scans."""
    in_print = printed.table("explorations_sizeup_averages").loc["average"]
    small, large = TUPLES["hundredktup"], TUPLES["tenmiltup"]
    then = [
        *charts.points(
            {small: in_print["q1"], large: in_print["q2"]}, "printed", series=size_up.LOOKUP
        ),
        *charts.points(
            {small: in_print["q3"], large: in_print["q4"]}, "printed", series=size_up.SCAN
        ),
    ]
    measured = chapter.medians("size-up", "time")
    of_variant = measured["label"].str.extract(r"(?P<series>.*), (?P<x>\d+) tuples")
    measured = measured.assign(series=of_variant["series"], x=of_variant["x"].astype(int))
    # in one process is too close to the other scan to be told apart
    measured = measured[measured["series"] != size_up.SERIAL].drop(columns="label")
    return charts.lines(
        charts.together([*then, measured]).sort_values("x", kind="stable", ignore_index=True),
        charts.Words(
            question="How does the time of one query grow with the relation?",
            caption=(
                "A lookup by the key, and a scan for one tuple as the planner likes it. On these"
                " axes a time proportional to the size is a straight line that climbs one decade"
                " per decade."
            ),
            name="explorations-sizeup",
            result=lambda _: _growth(chapter, measured),
        ),
        charts.Axis("size", "tuples", log=True),
        charts.Axis("time", "ms", log=True),
    )


def _growth(chapter: Chapter, measured: pd.DataFrame) -> str:
    """How many times as long the largest size takes as the smallest, for a lookup and for a scan.

    `measured` has the medians by size.
    """
    sizes = charts.own(measured)[1]["x"]
    least, most = sizes.min(), sizes.max()
    whats = (size_up.LOOKUP, size_up.SCAN)
    pairs = {what: tuple(size_up.variant(what, x) for x in (most, least)) for what in whats}
    found = charts.own(chapter.ratios("size-up", "time", pairs))[1].set_index("label")
    lookup, scan = (_longer(charts.value_of(found.loc[what])) for what in whats)
    return (
        f"With {narrate.number(most / least)} times the tuples a lookup takes {lookup}; a scan"
        f" takes {scan}."
    )


def _longer(times: Interval | float) -> str:
    """How many times as long, and whether that is more than the smallest effect of interest."""
    least = 1 + MARGIN
    said = f"{narrate.interval(times, against=(1, least))} times as long"
    if not isinstance(times, Interval) or times.low > least:
        return said
    within = "is" if times.high <= least else "may be"
    return f"{said}, which {within} no more than {narrate.percent(MARGIN)} longer"


# ---- Experiment 4


def costs(grid: pd.DataFrame) -> charts.Figure:
    """The merge join's cost over the hash join's by work_mem: in print, and where memory decides.

    `grid` is the frame of `experiments.planner.grid`.
    """
    chosen = [planner.printed_range(grid)]
    changes = planner.plan_changes(grid)
    if not changes.empty:
        last = changes[planner.JOINED].iloc[-1]
        chosen.append(grid[(grid[planner.JOINED] == last).all(axis=1)])
    panels = {
        f"{relations.name(rows['small'].iloc[0])}, {relations.name(rows['large'].iloc[0])}": rows
        for rows in chosen
    }
    titles = "; ".join(
        f"{panel}: {rows['attributes'].iloc[0]}, hash_mem_multiplier {rows['multiplier'].iloc[0]}"
        for panel, rows in panels.items()
    )
    points = []
    for panel, rows in panels.items():
        ratios = (rows[planner.MERGE] / rows[planner.HASH]).set_axis(
            rows["work_mem"].map(_megabytes)
        )
        points += charts.points(ratios, "measured", panel=panel)
    return charts.lines(
        points,
        charts.Words(
            question="Does memory enter the choice between hash join and merge join?",
            caption=(
                "The planner's cost of the merge join over that of the hash join, by work_mem"
                f" ({titles}). The cheaper one is picked: the hash join above 1, the merge join"
                " below."
            ),
            name="explorations-costs",
            result=lambda _: _cheaper(panels),
        ),
        charts.Axis("work_mem", "MB", log=True),
        charts.Axis("cost of merge join / hash join"),
        own_scales=True,
        reference=charts.Reference(1, "same cost"),
    )


def _cheaper(panels: Mapping[str, pd.DataFrame]) -> str:
    """Which join is the cheaper one at which work_mem, in each panel."""
    told = []
    for panel, rows in panels.items():
        gap = rows[planner.MERGE] - rows[planner.HASH]
        which = gap.map(lambda x: "hash" if x > 0 else "merge" if x < 0 else "neither")
        stretches = [
            (one.iloc[0], rows.loc[one.index, "work_mem"])
            for _, one in which.groupby((which != which.shift()).cumsum())
        ]
        if len(stretches) == 1:
            said = f"at every setting {_join(stretches[0][0])}"
        else:
            said = narrate.listed([f"{_join(w)} {_stretch(mem)}" for w, mem in stretches])
        told.append(f"in “{panel}” {said}")
    return f"The cheaper one is {'; '.join(told)}."


def _join(which: str) -> str:
    return which if which == "neither" else f"the {which} join"


def _stretch(work_mem: pd.Series) -> str:
    """ "with 4MB", "from 64kB to 4MB"."""
    first, last = work_mem.iloc[0], work_mem.iloc[-1]
    return f"with {first}" if first == last else f"from {first} to {last}"


# ---- another release


def two_releases(chapter: Chapter) -> charts.Figure:
    """Times of the slides' statements on two releases."""
    frame = chapter.medians("releases", "time")
    frame[["panel", "label"]] = frame["label"].str.split(": ", expand=True)
    return charts.compare(
        frame,
        charts.Words(
            question="What have the releases in between changed?",
            caption=(
                "Time of the slides' statements on two releases on this machine, measured in turns."
            ),
            name="explorations-releases",
            result=lambda _: _by_release(chapter, charts.own(frame)[1]),
        ),
        charts.Axis("time", "ms", zero=True),
        own_scales=True,
    )


def _by_release(chapter: Chapter, medians: pd.DataFrame) -> str:
    """How many of the statements take less time on one release than on the other, and how much.

    `medians` has a row for each statement (its panel) and release (its label).
    """
    other, one = sorted(medians["label"].unique())
    pairs = {words: (f"{words}: {one}", f"{words}: {other}") for words in medians["panel"].unique()}
    found = charts.own(chapter.ratios("releases", "time", pairs))[1].sort_values("value")
    less, more = found[found["high"] < 1], found[found["low"] > 1]
    least, most = (
        f"{narrate.number(row['value'], 2)} times as much for “{row['label']}”"
        for _, row in found.iloc[[0, -1]].iterrows()
    )
    return (
        f"{one} takes less time than {other} for {len(less) or 'none'} of"
        f" {narrate.count(len(found), 'statement')} and more for {len(more) or 'none'}: from"
        f" {least} to {most}."
    )


def slowed_readers(chapter: Chapter) -> charts.Figure:
    """The slow-down by size of the pool on a slowed disk, in the pools that are timed there."""
    dirty = {pool: f"{pool}: {buffer_pool.DIRTY}" for pool in slow_disk.pools()}
    pairs = {pool: (name, f"{pool}: {buffer_pool.CLEAN}") for pool, name in dirty.items()}
    in_print = _printed_slowdowns()
    written = charts.own(
        chapter.medians(slow_disk.NAME, "writes", {name: pool for pool, name in dirty.items()})
    )[1]
    return charts.compare(
        charts.together(
            [
                in_print[in_print["label"].isin(slow_disk.pools())],
                chapter.ratios(slow_disk.NAME, "time", pairs),
            ],
            order=buffer_pool.SHARES,
        ),
        charts.Words(
            question="What does a reader pay for another's update where a page costs time?",
            caption=(
                "Time to read one relation after an update of the other, over the time after a"
                " read of it, by the pool's size in relations. Measured on a"
                f" {chapter.disk(slow_disk.NAME)}, page by page. The printed marks are the medians"
                " of the slides' five pairs, with their range."
            ),
            name="explorations-slowed-readers",
            result=lambda frame: f"{_slower(frame)} {_pages_first(written)}",
        ),
        charts.Axis("slow-down", log=True),
        reference=charts.Reference(1, "none"),
    )


def _pages_first(written: pd.DataFrame) -> str:
    """The pages that the reader writes first, by pool; `written` has their medians."""
    told = [f"{narrate.number(row.value)} in a pool of {row.label}" for row in written.itertuples()]
    return f"Pages that the reader wrote first: {narrate.listed(told)}."


def _printed_slowdowns() -> pd.DataFrame:
    """The slides' rounds as pairs: rows by pool, the medians with their range."""
    found = evidence.printed_slowdowns().rename(buffer_pool.printed_pool, axis="index")
    found = found.rename_axis("label").reset_index().rename(columns={"median": "value"})
    return found.assign(kind="printed")
