"""The charts of the chapter: frames from the print, the published run and this run, and their
words.
"""

from collections.abc import Mapping

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
from pgrerun.page import charts
from pgrerun.record import printed, statistics
from pgrerun.record.printed import access_paths as in_print


def _points(points: Mapping[float, statistics.Interval], **more: str) -> pd.DataFrame:
    """Rows of a line: measured intervals by x, with further columns."""
    rows = [charts.row(x, "measured", interval, **more) for x, interval in points.items()]
    return pd.DataFrame(rows).rename(columns={"label": "x"})


def lookups_in_print() -> charts.Figure:
    """What the talk prints of lookups."""
    lookups = printed.table("access_paths_lookups").itertuples()
    frame = pd.DataFrame([charts.row(row.label, "printed", row.tps) for row in lookups])
    return charts.compare(
        frame,
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
    frame = pd.DataFrame(
        [
            charts.row("before PostgreSQL 9.2", "printed", join.before_ms.iloc[0]),
            charts.row("with it, at first", "printed", join.value["first_ms"]),
            charts.row("with it, again", "printed", join.value["later_ms"]),
        ]
    )
    return charts.compare(
        frame,
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
    pages, parts = found["scanned"].max(), []
    for column, kind in (("computed", "simulated"), ("scanned", "measured")):
        x, value = (100 / found["every"]).round(2), 100 * found[column] / pages
        parts.append(pd.DataFrame({"x": x, "value": value, "kind": kind}))
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
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
    frame = frame[["x", "value", "series", "kind"]]
    return charts.lines(
        frame,
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
    said = [
        charts.row(f"lookups, {DIRECT}", "printed", times),
        charts.row("range in random order, direct I/O", "printed", most),
    ]
    frame = pd.concat([*parts, pd.DataFrame(said)], ignore_index=True)
    return charts.compare(
        frame,
        charts.Words(
            question="What is an index-only scan worth?",
            caption=(
                "Throughput, or one over time, relative to what has to visit the table. In print:"
                " the talk's experiment, and the largest gain that it has heard of, whose query"
                " isn't told."
            ),
            name="access-paths-gains",
        ),
        charts.Axis("gain", log=True),
        reference=charts.Reference(1, "no gain"),
    )


def every_run(chapter: Chapter) -> charts.Figure:
    """Every repetition of the talk's experiment."""
    kind, observations = chapter.by_provenance("lookups")[-1]
    throughput = wide(observations, "throughput")
    names = [variant(where, index) for where in PLACES for index in RELATIONS]
    order = [name for name in names if name in throughput]
    every = throughput[order].melt(ignore_index=False, var_name="label")
    every = every.reset_index().assign(kind=kind)
    return charts.observations(
        every,
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
    frame = _points({percent: evidence.only_over_plain(chapter, percent) for percent in FRACTIONS})
    return charts.lines(
        frame,
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
    parts, ratios = [], {}
    for column, kind in (("computed", "simulated"), ("fetched", "measured")):
        part = pd.DataFrame({"x": found["updates"], "value": found[column], "kind": kind})
        parts.append(part.assign(panel="rows looked up in the table"))
    for number in UPDATES:
        only, plain = updated(number, ONLY), updated(number, PLAIN)
        ratios[number] = chapter.ratio(f"updates_{number}", "seconds", only, plain)
    parts.append(_points(ratios, panel="time, relative to plain"))
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
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
        charts.Axis("share, or ratio", zero=True),
        own_scales=True,
    )


def costs(found: pd.DataFrame) -> charts.Figure:
    """Estimated costs over the share of pages that pg_class claims to be all-visible."""
    paths = list(planner.PATHS)
    frame = found.melt("percent", paths, var_name="series").rename(columns={"percent": "x"})
    frame["kind"] = "measured"
    return charts.lines(
        frame,
        charts.Words(
            question="What does the planner make of the visibility map?",
            caption=(
                "Estimated cost of three ways to read a tenth of the rows, which lie in random"
                " order, while pg_class claims ever more pages to be all-visible. The table stays"
                " the same."
            ),
            name="access-paths-costs",
        ),
        charts.Axis("pages that pg_class claims to be all-visible", "%"),
        charts.Axis("estimated cost", zero=True),
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
        parts.append(_points(medians, series=name))
        said = {"x": printed_rows, "value": milliseconds, "kind": "printed", "series": name}
        parts.append(pd.DataFrame([said]))
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
        charts.Words(
            question="How does the time of the talk's join grow with its large table?",
            caption=(
                "A table joined to itself, and that to ten keys spread over it, by 9.1's plan and"
                " by 9.2's. Both axes are logarithmic."
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
                value = statistics.median(times[sorting_variant(key, how)])
                rows.append(charts.row(how, kind, value, panel=key))
    frame = pd.DataFrame(rows)
    return charts.compare(
        frame,
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
