"""The charts of the chapter: frames from the print, the published run and this run, and their
words.
"""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.access_paths import evidence
from pgrerun.chapters.access_paths.accounts import DIRECT, PLACES
from pgrerun.chapters.access_paths.experiments import joins, plan_cache, planner
from pgrerun.chapters.access_paths.experiments.lookups import COVERING, KEY, RELATIONS, variant
from pgrerun.chapters.access_paths.experiments.ranges import (
    FRACTIONS,
    ONLY,
    PLAIN,
    RANGES,
    UPDATES,
    marked,
    updated,
)
from pgrerun.chapters.access_paths.experiments.sorting import KEYS, SUPPORTED, UNSUPPORTED
from pgrerun.chapters.access_paths.experiments.sorting import variant as sorting_variant
from pgrerun.page import charts, narrate
from pgrerun.record import printed, statistics
from pgrerun.record.printed import access_paths as in_print


def lookups_in_print() -> charts.Figure:
    """What the talk prints of lookups."""
    lookups = printed.table("access_paths_lookups").set_index("label")
    return charts.compare(
        charts.rows(lookups["tps"], "printed"),
        charts.Words(
            question="What did the covering index do to lookups?",
            caption=(
                "Lookups by key on a laptop, in a relation of a hundred million rows that doesn't"
                " fit into memory."
            ),
            name="access-paths-print",
        ),
        charts.Axis("throughput", "transactions/s", zero=True),
    )


def join_in_print() -> charts.Figure:
    """What the talk prints of its join."""
    join = printed.derived("access_paths_join")
    milliseconds = {
        "before PostgreSQL 9.2": join.before_ms.iloc[0],
        "with it, at first": join.value["first_ms"],
        "with it, again": join.value["later_ms"],
    }
    return charts.compare(
        charts.rows(milliseconds, "printed"),
        charts.Words(
            question="What did parameterized paths do to the join?",
            caption=(
                "Ten numbers, left-joined with the inner join of two copies of the same relation."
                " The axis is logarithmic."
            ),
            name="access-paths-join-print",
        ),
        charts.Axis("time", "ms", log=True),
    )


def skipped(found: pd.DataFrame) -> charts.Figure:
    """Pages that VACUUM scans over pages changed."""
    shares = 100 * found / found["scanned"].max()
    shares.index = (100 / found["every"]).round(2)
    return charts.lines(
        [
            *charts.points(shares["computed"], "simulated"),
            *charts.points(shares["scanned"], "measured"),
        ],
        charts.Words(
            question="How much of a table can vacuum skip?",
            caption=(
                "Every so many pages, evenly spread, one page has changed. Simulated is the rule"
                " that only runs of at least thirty-two all-visible pages are skipped."
            ),
            name="access-paths-vacuum",
        ),
        charts.Axis("pages changed", "%", log=True),
        charts.Axis("pages scanned", "%", zero=True),
    )


def by_columns(found: pd.DataFrame) -> charts.Figure:
    """Size of an index over all columns, relative to its table."""
    frame = found.rename(columns={"columns": "x", "way": "series"})
    frame = frame.assign(value=frame["index"] / frame["table"], kind="measured")
    return charts.lines(
        frame[["x", "value", "series", "kind"]],
        charts.Words(
            question="When is an index larger than its table?",
            caption=(
                "Pages of an index over all columns of a table, over those of the table. The"
                " columns take 8 bytes each; the index is built over the finished table or grows"
                " with it. Above 1 the index is the larger one."
            ),
            name="access-paths-widths",
        ),
        charts.Axis("columns"),
        charts.Axis("size, relative to the table"),
    )


def gains(chapter: Chapter) -> charts.Figure:
    """What an index-only scan gains, by case, with the talk's two numbers."""
    lookups = {
        f"lookups, {where}": (variant(where, COVERING), variant(where, KEY)) for where in PLACES
    }
    parts = [chapter.ratios("lookups", "throughput", lookups)]
    for name in RANGES:
        pairs = {f"range {name}": (f"{PLAIN}, {name}", f"{ONLY}, {name}")}
        parts.append(chapter.ratios(f"ranges {name}", "seconds", pairs))
    for percent in (100, 0):
        label = f"whole table, {percent} % of its pages all-visible"
        pairs = {label: (marked(percent, PLAIN), marked(percent, ONLY))}
        parts.append(chapter.ratios(f"fractions_{percent}", "seconds", pairs))
    times = printed.derived("access_paths_lookups").over_primary_key["covering"]
    most = printed.cell("access_paths_said", "most", "value")
    said = {f"lookups, {DIRECT}": times, "range in random order, direct I/O": most}
    return charts.compare(
        [*parts, *charts.rows(said, "printed")],
        charts.Words(
            question="What is an index-only scan worth?",
            caption=(
                "Throughput, or one over time, relative to what has to visit the table. Printed are"
                " the talk's experiment, and the largest gain that it has heard of, whose query"
                " isn't told."
            ),
            name="access-paths-gains",
            result=lambda frame: _gains_result(frame, f"lookups, {DIRECT}"),
        ),
        charts.Axis("gain", "times", log=True),
        reference=charts.Reference(1, "no gain"),
    )


def _gains_result(frame: pd.DataFrame, talks: str) -> str:
    """Where an index-only scan gains most, where it loses, and the talk's case by its print."""
    whose, rows = charts.own(frame)
    if rows.empty:
        return ""
    told = {
        row["label"]: narrate.interval(charts.value_of(row), "times") for _, row in rows.iterrows()
    }
    most = rows.sort_values("value")["label"].iloc[-1]
    said = f"{whose} an index-only scan gains most, {told[most]}, in “{most}”."
    loses = [f"“{label}” ({told[label]})" for label in rows.loc[rows["high"] < 1, "label"]]
    said += f" It loses in {narrate.listed(loses)}." if loses else ""
    if talks in told:
        size = frame.loc[(frame["kind"] == "printed") & (frame["label"] == talks), "value"]
        beside = f" (printed: {narrate.number(size.iloc[0])})" if len(size) else ""
        said += f" In “{talks}” it gains {told[talks]}{beside}."
    return said


def every_run(chapter: Chapter) -> charts.Figure:
    """Every repetition of the talk's experiment."""
    names = [variant(where, index) for where in PLACES for index in RELATIONS]
    return charts.observations(
        chapter.repetitions("lookups", "throughput", dict(zip(names, names, strict=True))),
        charts.Words(
            question="How fast are lookups, and how much do runs differ?",
            caption=(
                "Throughput of every repetition, with the median of each variant and its interval."
            ),
            name="access-paths-lookups",
        ),
        charts.Axis("throughput", "transactions/s", zero=True),
    )


def by_fraction(chapter: Chapter) -> charts.Figure:
    """Time of an index-only scan relative to a plain one, over the share of all-visible pages."""
    ratios = {percent: evidence.only_over_plain(chapter, percent) for percent in FRACTIONS}
    return charts.lines(
        charts.points(ratios, "measured"),
        charts.Words(
            question="How many pages must be all-visible for an index-only scan to pay?",
            caption=(
                "Time of an index-only scan over that of a plain index scan, all of accounts in"
                " index order, everything in memory. Above 1 the index-only scan loses."
            ),
            name="access-paths-fractions",
        ),
        charts.Axis("pages all-visible", "%"),
        charts.Axis("relative time"),
    )


def by_updates(chapter: Chapter, found: pd.DataFrame) -> charts.Figure:
    """Heap fetches and relative time over updates since the last vacuum."""
    fetched = found.set_index("updates")
    looked_up = "rows looked up in the table (share)"
    ratios = {
        number: chapter.ratio(
            f"updates_{number}", "seconds", updated(number, ONLY), updated(number, PLAIN)
        )
        for number in UPDATES
    }
    return charts.lines(
        [
            *charts.points(fetched["computed"], "simulated", panel=looked_up),
            *charts.points(fetched["fetched"], "measured", panel=looked_up),
            *charts.points(
                ratios, "measured", panel="time of an index-only scan over that of a plain one"
            ),
        ],
        charts.Words(
            question="How soon do updates spoil an index-only scan?",
            caption=(
                "Rows drawn at random are updated after a vacuum. Simulated is the share of pages"
                " that are hit at least once. Below: the time of an index-only scan over that of a"
                " plain one."
            ),
            name="access-paths-updates",
        ),
        charts.Axis("updates since vacuum", "per page"),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def costs(found: pd.DataFrame) -> charts.Figure:
    """Estimated costs over the share of pages that pg_class claims to be all-visible."""
    paths = list(planner.PATHS)
    frame = found.melt("percent", paths, var_name="series").rename(columns={"percent": "x"})
    return charts.lines(
        frame.assign(kind="measured"),
        charts.Words(
            question="What does the planner make of the visibility map?",
            caption=(
                "Estimated cost of three ways to read a tenth of the rows, which lie in random"
                " order, while pg_class claims ever more pages to be all-visible. The table stays"
                " the same. A bitmap scan, which the planner may choose as well, isn't drawn."
            ),
            name="access-paths-costs",
        ),
        charts.Axis("pages that pg_class claims to be all-visible", "%"),
        charts.Axis("estimated cost", zero=True),
        keyed=True,  # a line would go through another's name
    )


def join_growth(chapter: Chapter) -> charts.Figure:
    """Time of the talk's join over the size of the large table, with the talk's points."""
    printed_rows = (
        printed.cell("access_paths_setup", "scale", "value") * in_print.ACCOUNTS_PER_SCALE
    )
    join, parts = printed.derived("access_paths_join"), []
    series = {
        joins.BEFORE: ("9.1's plan", join.before_ms.iloc[0]),
        joins.PARAMETERIZED: ("9.2's plan", join.value["later_ms"]),
    }
    for plan, (name, milliseconds) in series.items():
        medians = {
            rows: chapter.median(f"join_{rows}", "seconds", plan).times(1000)
            for rows in joins.large_relations(chapter)
        }
        parts += charts.points(medians, "measured", series=name)
        parts += charts.points({printed_rows: milliseconds}, "printed", series=name)
    return charts.lines(
        parts,
        charts.Words(
            question="How does the time of the talk's join grow with its large table?",
            caption=(
                "A table joined to itself, and that to ten keys spread over it, by 9.1's plan and"
                " by 9.2's, where memory isn't short. Both axes are logarithmic."
            ),
            name="access-paths-join",
        ),
        charts.Axis("rows of the large table", log=True),
        charts.Axis("time", "ms", log=True),
    )


def sort_support(chapter: Chapter) -> charts.Figure:
    """Time of sorting by type, with sort support and without."""
    rows = []
    for kind, observations in chapter.by_provenance("sorting"):
        times = 1000 * evidence.sorting_only(wide(observations, "seconds"))
        for key in KEYS:
            for how in (SUPPORTED, UNSUPPORTED):
                if (name := sorting_variant(key, how)) in times:  # the published run may be older
                    rows.append(charts.row(how, kind, statistics.median(times[name]), panel=key))
    return charts.compare(
        rows,
        charts.Words(
            question="What is sort support worth?",
            caption=(
                f"Time to sort {chapter.parameters.objects:,} rows in memory, the time to read them"
                " taken off. Without sort support every comparison is a function call by"
                " PostgreSQL's general convention."
            ),
            name="access-paths-sorting",
        ),
        charts.Axis("time", "ms", zero=True),
    )


def prepared(chapter: Chapter) -> charts.Figure:
    """Time of a prepared query for a rare value, by how it got its plan."""
    order = (plan_cache.CUSTOM, plan_cache.AUTO, plan_cache.GENERIC, plan_cache.LURED)
    frame = chapter.medians("plan_cache", "seconds", {name: name for name in order})
    frame[["value", "low", "high"]] *= 1000
    return charts.compare(
        frame,
        charts.Words(
            question="Which plan does a prepared query get for a rare value?",
            caption=(
                "One execution for the rare value, by how the plan was chosen. The axis is"
                " logarithmic."
            ),
            name="access-paths-plan-cache",
        ),
        charts.Axis("time of one execution", "ms", log=True),
    )
