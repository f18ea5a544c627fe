"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.access_paths import joins as talks_join
from pgrerun.chapters.access_paths import lookups as found_in
from pgrerun.chapters.access_paths import plan_cache as cache
from pgrerun.chapters.access_paths import planner
from pgrerun.chapters.access_paths.lookups import COVERING, DIRECT, FRACTIONS, INDEX, KEY, PLACES, SEQUENTIAL, SHARES, UPDATES, Updated
from pgrerun.chapters.access_paths.sorting import KEYS, SUPPORTED, UNSORTED, UNSUPPORTED, name
from pgrerun.published import access_paths as printed


def lookups_in_print() -> charts.Figure:
    """What the talk prints of lookups."""
    frame = pd.DataFrame([charts.row(row.label, "printed", row.tps) for row in published.table("access_paths_lookups").itertuples()])
    return charts.compare_to_print(
        frame,
        question="What did the covering index do to lookups?",
        caption="Lookups by key on a laptop, in a relation of a hundred million rows that doesn't fit into memory.",
        description=narrate.described(frame),
        quantity="throughput",
        unit="transactions/s",
        zero=True,
        name="access-paths-print",
    )


def join_in_print() -> charts.Figure:
    """What the talk prints of its join."""
    join = published.derived("access_paths_join")
    frame = pd.DataFrame(
        [
            charts.row("before PostgreSQL 9.2", "printed", join.before_ms.iloc[0]),
            charts.row("with it, at first", "printed", join.value["first_ms"]),
            charts.row("with it, again", "printed", join.value["later_ms"]),
        ]
    )
    return charts.compare_to_print(
        frame,
        question="What did parameterized paths do to the join?",
        caption="Ten numbers, left-joined with the inner join of two copies of the same relation. The axis is logarithmic.",
        description=narrate.described(frame),
        quantity="time",
        unit="ms",
        log=True,
        name="access-paths-join-print",
    )


def skipped(found: pd.DataFrame | None) -> charts.Figure | None:
    """Pages that vacuum scans over pages changed."""
    if found is None:
        return None
    pages = 100 / found["scanned"].max()
    frame = pd.concat(
        pd.DataFrame({"x": (100 / found["every"]).round(2), "value": found[column] * pages, "kind": kind}) for column, kind in (("computed", "simulated"), ("scanned", "measured"))
    ).reset_index(drop=True)
    return charts.lines(
        frame,
        question="How much of a table can vacuum skip?",
        caption="Every so many pages, evenly spread, one page has changed. Simulated is the rule that only runs of at least thirty-two all-visible pages are skipped.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:.3g} % changed".format))),
        x_quantity="pages changed",
        x_unit="%",
        quantity="pages scanned",
        unit="%",
        log_x=True,
        zero=True,
        name="access-paths-vacuum",
    )


def by_columns(found: pd.DataFrame | None) -> charts.Figure | None:
    """Size of an index over all columns, relative to its table."""
    if found is None:
        return None
    frame = pd.DataFrame({"x": found["columns"], "value": found["index"] / found["table"], "series": found["way"], "kind": "measured"})
    return charts.lines(
        frame,
        question="When is an index larger than its table?",
        caption="Pages of an index over all columns of a table, over those of the table. The columns take 8 bytes each; the index is built over the finished table or grows with it. Above 1 the index is the larger one.",
        description=narrate.described(frame.assign(label=frame["series"] + ", " + frame["x"].astype(str) + " columns")),
        x_quantity="columns",
        x_unit="",
        quantity="size, relative to the table",
        unit="",
        name="access-paths-widths",
    )


def gains(chapter: Chapter) -> charts.Figure | None:
    """What an index-only scan gains, by case, with the talk's two numbers."""
    measured = found_in.gains(chapter)
    if not measured:
        return None
    printed = {f"lookups, {DIRECT}": published.derived("access_paths_lookups").over_primary_key["covering"], "range in random order, direct I/O": published.cell("access_paths_said", "most", "value")}
    rows = []
    for label, gain in measured.items():
        if label in printed:
            rows.append(charts.row(label, "printed", printed[label]))
        rows.append(charts.row(label, "measured", gain))
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What is an index-only scan worth?",
        caption="Throughput, or one over time, relative to what has to visit the table. In print: the talk's experiment, and the largest gain that it has heard of, whose query isn't told.",
        description=narrate.described(frame),
        quantity="gain",
        unit="",
        reference=1,
        reference_label="no gain",
        log=True,
        name="access-paths-gains",
    )


def every_run(chapter: Chapter) -> charts.Figure | None:
    """Every repetition of the talk's experiment."""
    found = chapter.by_provenance("lookups")
    if not found:
        return None
    kind, frame = found[-1]
    table = wide(frame, "throughput")
    order = [arm for where in PLACES for index in (KEY, COVERING) if (arm := found_in.arm(where, index)) in table]
    medians = pd.DataFrame([charts.row(arm, kind, statistics.median(table[arm])) for arm in order])
    every = table[order].melt(ignore_index=False, var_name="label").rename_axis("block").reset_index().assign(kind=kind)
    return charts.observations(
        every,
        question="How fast are lookups, and how much do runs differ?",
        caption="Throughput of every repetition, with the median of each arm and its interval.",
        description=narrate.described(medians),
        quantity="throughput",
        unit="transactions/s",
        intervals=medians,
        zero=True,
        name="access-paths-lookups",
    )


def _line(chapter: Chapter, points: dict[float, statistics.Interval | None], **more) -> pd.DataFrame:
    return pd.DataFrame([{"x": x, "value": i.estimate, "low": i.low, "high": i.high, "kind": "measured", **more} for x, i in points.items() if i is not None])


def by_fraction(chapter: Chapter) -> charts.Figure | None:
    """Time of an index-only scan relative to a plain one, over the share of all-visible pages."""
    frame = _line(chapter, {percent: found_in.only_over_plain(chapter, percent) for percent in FRACTIONS})
    if frame.empty:
        return None
    return charts.lines(
        frame,
        question="How many pages must be all-visible for an index-only scan to pay?",
        caption="Time of an index-only scan over that of a plain index scan, all of accounts in index order, everything in memory. Above 1 the index-only scan loses.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:g} % all-visible".format))),
        x_quantity="pages all-visible",
        x_unit="%",
        quantity="relative time",
        unit="",
        name="access-paths-fractions",
    )


def by_updates(chapter: Chapter, found: list[Updated] | None) -> charts.Figure | None:
    """Heap fetches and relative time over updates since the last vacuum."""
    if found is None:
        return None
    shares, times = "rows looked up in the table", "time, relative to plain"
    rows = [{"x": u.updates, "value": value, "kind": kind, "panel": shares} for kind in ("simulated", "measured") for u in found for value in [u.computed if kind == "simulated" else u.fetched]]
    line = _line(chapter, {n: (gain := found_in.gain_after(chapter, n)) and gain.inverse() for n in UPDATES}, panel=times)
    frame = pd.concat([pd.DataFrame(rows), line], ignore_index=True)
    return charts.lines(
        frame,
        question="How soon do updates spoil an index-only scan?",
        caption="Rows drawn at random are updated after a vacuum. Simulated is the share of pages that are hit at least once. Below: the time of an index-only scan over that of a plain one.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:g} updates per page".format))),
        x_quantity="updates since vacuum",
        x_unit="per page",
        quantity="share, or ratio",
        unit="",
        facet="panel",
        own_scales=True,
        zero=True,
        name="access-paths-updates",
    )


def costs(found: pd.DataFrame | None) -> charts.Figure | None:
    """Estimated costs over the share of pages that pg_class claims to be all-visible."""
    if found is None:
        return None
    frame = found.melt(id_vars="percent", value_vars=list(planner.PATHS), var_name="series", value_name="value").rename(columns={"percent": "x"}).assign(kind="measured")
    return charts.lines(
        frame,
        question="What does the planner make of the visibility map?",
        caption="Estimated cost of three ways to read a tenth of the rows, which lie in random order, while pg_class claims ever more pages to be all-visible. The table stays the same.",
        description=narrate.described(frame.assign(label=frame["series"] + " at " + frame["x"].astype(str) + " %")),
        x_quantity="pages that pg_class claims to be all-visible",
        x_unit="%",
        quantity="estimated cost",
        unit="",
        zero=True,
        name="access-paths-costs",
    )


def breakeven(chapter: Chapter) -> charts.Figure | None:
    """Time of an index scan over the share of rows, beside a sequential scan."""
    parts = []
    for where, shares in SHARES.items():
        table = chapter.table(f"breakeven {where}", "seconds")
        if table.empty:
            continue
        parts.append(_line(chapter, {100 * share: statistics.median(1000 * table[f"{INDEX}, {share:g}"]) for share in shares}, series=INDEX, panel=where))
        parts.append(_line(chapter, {100 * share: statistics.median(1000 * table[SEQUENTIAL]) for share in (shares[0], max(map(max, SHARES.values())))}, series=SEQUENTIAL, panel=where))
    if not parts:
        return None
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
        question="How many rows may a query want before an index scan is the slower way?",
        caption="Rows that neighbour each other in the index and lie in random order in the table. A sequential scan reads the whole table, however few rows it wants; it was measured at one share. Both axes are logarithmic.",
        description=narrate.described(frame.assign(label=frame["series"] + ", " + frame["x"].map("{:g} %".format))),
        x_quantity="rows wanted",
        x_unit="%",
        quantity="time",
        unit="ms",
        facet="panel",
        own_scales=True,
        log_x=True,
        log_y=True,
        name="access-paths-breakeven",
    )


def join_growth(chapter: Chapter) -> charts.Figure | None:
    """Time of the talk's join over the size of the large table, with the print's points."""
    names, parts = {talks_join.BEFORE: "9.1's plan", talks_join.PARAMETERIZED: "9.2's plan"}, []
    for arm in names:
        medians = {rows: statistics.median(1000 * table[arm]) for rows in talks_join.sizes(chapter) if not (table := chapter.table(f"join_{rows}", "seconds")).empty}
        parts.append(_line(chapter, medians, series=names[arm]))
    if all(part.empty for part in parts):
        return None
    join, rows = published.derived("access_paths_join"), published.cell("access_paths_setup", "scale", "value") * printed.ACCOUNTS_PER_SCALE
    points = {talks_join.BEFORE: join.before_ms.iloc[0], talks_join.PARAMETERIZED: join.value["later_ms"]}
    parts.append(pd.DataFrame([{"x": rows, "value": value, "kind": "printed", "series": names[arm]} for arm, value in points.items()]))
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
        question="How does the time of the talk's join grow with its large table?",
        caption="A table joined to itself, and that to ten keys spread over it, by 9.1's plan and by 9.2's. Both axes are logarithmic.",
        description=narrate.described(frame.assign(label=frame["series"] + ", " + frame["x"].map("{:,.0f} rows".format))),
        x_quantity="rows of the large table",
        x_unit="",
        quantity="time",
        unit="ms",
        log_x=True,
        log_y=True,
        name="access-paths-join",
    )


def sort_support(chapter: Chapter) -> charts.Figure | None:
    """Time of sorting by type, with sort support and without."""
    rows = []
    for kind, frame in chapter.by_provenance("sorting"):
        table = wide(frame, "seconds")
        for key in KEYS:
            for how in (SUPPORTED, UNSUPPORTED) if name(key, SUPPORTED) in table else ():
                rows.append(charts.row(how, kind, statistics.median(1000 * (table[name(key, how)] - table[UNSORTED].min())), panel=key))
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What is sort support worth?",
        caption=f"Time to sort {chapter.parameters.objects:,} rows in memory, the time to read them taken off. Without sort support every comparison is a function call by PostgreSQL's general convention.",
        description=narrate.described(frame),
        quantity="time",
        unit="ms",
        facet="panel",
        zero=True,
        name="access-paths-sorting",
    )


def prepared(chapter: Chapter) -> charts.Figure | None:
    """Time of a prepared query for a rare value, by how it got its plan."""
    rows = [
        charts.row(arm, kind, statistics.median(1000 * wide(frame, "seconds")[arm]))
        for arm in (cache.CUSTOM, cache.AUTO, cache.GENERIC, cache.LURED) for kind, frame in chapter.by_provenance("plan_cache")
    ]  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Which plan does a prepared query get for a rare value?",
        caption="One execution for the rare value, by how the plan was chosen. The axis is logarithmic.",
        description=narrate.described(frame),
        quantity="time of one execution",
        unit="ms",
        log=True,
        name="access-paths-plan-cache",
    )
