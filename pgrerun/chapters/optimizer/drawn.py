"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

from collections.abc import Iterable

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import diagrams, joins, ranges, scans, suggestions
from pgrerun.chapters.optimizer.faults import CONSTANT, NONE
from pgrerun.chapters.optimizer.queries import BITMAP, HASH, INDEX, LARGE, MERGE, NESTED, REPORT, SEQUENTIAL
from pgrerun.chapters.optimizer.scans import ATTRIBUTES, CLUSTERED, COLD, COUNTED, SHUFFLED, WARM


def _series(rows: Iterable[dict]) -> pd.DataFrame:
    """Rows of a sweep; their labels read them aloud."""
    frame = pd.DataFrame(list(rows))
    frame["label"] = [f"{series} at {x:g}".strip() for series, x in zip(frame["series"], frame["x"])]
    return frame


def the_print() -> charts.Figure:
    """The first set in print: times and costs before and after the corrections."""
    first, revised = (published.derived(f"optimizer_{name}") for name in ("set1", "revised"))
    before, after = "Figure 3.12: as found", "Figure 3.14: corrected"
    rows = [
        {"x": row.selectivity, "value": value / 60, "kind": "printed", "series": series, "panel": before}
        for row in first.itertuples() for series, value in ((INDEX, row.index_s), (SEQUENTIAL, row.seq_s))
    ]  # fmt: skip
    rows += [
        {"x": row.selectivity, "value": row.time_s / 60, "kind": "printed", "series": row.plan.replace("seq.", "sequential"), "panel": after}
        for row in revised.itertuples()
    ]
    frame = _series(rows)
    return charts.lines(
        frame,
        question="How long did the first set of optimizer tests take in 1990, by scan and selectivity?",
        caption="Printed times for storing a growing share of a relation of ten thousand tuples. Before the corrections the index scan was always planned and the "
        "sequential scan forced; of the corrected run only the planned scans are printed.",
        description=narrate.described(frame),
        x_quantity="selectivity", x_unit="", quantity="time", unit="minutes", facet="panel", zero=True, name="optimizer-print",
    )  # fmt: skip


def costs(found: pd.DataFrame) -> charts.Figure:
    """Calculated costs of all scans, relative to the sequential one."""
    revised = published.derived("optimizer_revised")
    least = revised["cost"].max()
    rows = [
        {"x": row.selectivity, "value": row.cost / least, "kind": "printed", "series": row.plan.replace("seq.", "sequential"), "panel": CLUSTERED}
        for row in revised.itertuples() if row.plan.startswith("index")
    ]  # fmt: skip
    for (layout, method), own in found[found["method"] != SEQUENTIAL].groupby(["layout", "method"], sort=False):
        base = found[(found["layout"] == layout) & (found["method"] == SEQUENTIAL)].set_index("selectivity")["cost"]
        rows += [{"x": row.selectivity, "value": row.cost / base[row.selectivity], "kind": "measured", "series": method, "panel": layout} for row in own.itertuples()]
    frame = _series(rows)
    return charts.lines(
        frame,
        question="What does the planner think that each scan costs?",
        caption="Calculated cost over that of the sequential scan, in print (after the corrections) and by the server under test, in a relation of the report's "
        "size. Above one the sequential scan is the cheaper one.",
        description=narrate.described(frame),
        x_quantity="selectivity", x_unit="", quantity="cost relative to the sequential scan", unit="", facet="panel", own_scales=True, zero=True, name="optimizer-costs",
    )  # fmt: skip


def scan_times(chapter: Chapter, cache: str) -> charts.Figure | None:
    """Measured times of index scan and bitmap scan over that of the sequential scan; the print alone where nothing could be measured."""
    printed, rows = published.derived("optimizer_set1"), []
    if cache == COLD:
        rows = [{"x": row.selectivity, "value": row.index_over_seq, "kind": "printed", "series": INDEX, "panel": CLUSTERED} for row in printed.itertuples()]
    for layout in ATTRIBUTES:
        found = scans.times(chapter, layout, cache)
        if found is None:
            continue
        for selectivity in scans.timed_at(chapter):
            for method in (INDEX, BITMAP):
                ratio = statistics.ratio(found[method, selectivity], found[SEQUENTIAL, selectivity], seed=chapter.parameters.seed)
                rows.append({"x": selectivity, "value": ratio.estimate, "low": ratio.low, "high": ratio.high, "kind": "measured", "series": method, "panel": layout})
    if not rows:
        return None
    frame = _series(rows)
    about = {WARM: "with the relation in memory", COLD: "with the relation in no cache"}[cache]
    return charts.lines(
        frame,
        question=f"How long does each scan really take, {about}?",
        caption=f"Time of storing the result in a temporary relation, {about}, over the time of the sequential scan: median and interval over the blocks. Above one the "
        "sequential scan is the faster one.",
        description=narrate.described(frame),
        x_quantity="selectivity", x_unit="", quantity="time relative to the sequential scan", unit="", facet="panel", own_scales=True, log_y=True, name=f"optimizer-scans-{cache}",
    )  # fmt: skip


def counted(chapter: Chapter) -> charts.Figure | None:
    """Time of a sequential scan that stores, and of one that counts, relative to the narrowest range."""
    least = scans.steps()[0]
    printed = published.derived("optimizer_set1")
    rows = [{"x": row.selectivity, "value": row.seq_s / printed["seq_s"].iloc[0], "kind": "printed", "series": "stored"} for row in printed.itertuples()]
    for what, found in (("stored", scans.times(chapter, CLUSTERED, WARM)), ("counted", scans.times(chapter, COUNTED, ""))):
        if found is None:
            return None
        for selectivity in scans.timed_at(chapter):
            ratio = statistics.ratio(found[SEQUENTIAL, selectivity], found[SEQUENTIAL, least], seed=chapter.parameters.seed)
            rows.append({"x": selectivity, "value": ratio.estimate, "low": ratio.low, "high": ratio.high, "kind": "measured", "series": what})
    frame = _series(rows)
    return charts.lines(
        frame,
        question="Does a sequential scan take longer when more tuples qualify?",
        caption="Time of the sequential scan over that for the narrowest range: in print, where the result was stored, and here, where it is stored or only counted.",
        description=narrate.described(frame),
        x_quantity="selectivity", x_unit="", quantity="time relative to the narrowest range", unit="", zero=True, name="optimizer-counted",
    )  # fmt: skip


def switch_overs(chapter: Chapter, planned: dict[str, float]) -> charts.Figure:
    """Planned and best switch-over, printed and here."""
    said = published.table("optimizer_said")["value"]
    rows = [
        charts.row("planned", "printed", said["revised_switch"], panel=CLUSTERED), charts.row("planned", "measured", planned[CLUSTERED], panel=CLUSTERED),
    ]  # fmt: skip
    for layout, method in ((CLUSTERED, INDEX), (SHUFFLED, BITMAP)):
        rows += [charts.row("planned", "measured", planned[SHUFFLED], panel=SHUFFLED)] if layout == SHUFFLED else []
        for cache in (WARM, COLD):
            measured = scans.measured_switch(chapter, layout, cache, method)
            if (layout, cache) == (CLUSTERED, COLD):  # in print two relations took turns, so that neither stayed in memory
                rows.append(charts.row(f"best, {cache}", "printed", said["best_switch"], panel=layout))
            rows += [] if measured is None else [charts.row(f"best, {cache}", "measured", measured, panel=layout)]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Where does the planner switch to the sequential scan, and where should it?",
        caption="Selectivity from which on the sequential scan is planned, and from which on it is the faster one: against the index scan where the relation is "
        "clustered, else against the bitmap scan.",
        description=narrate.described(frame),
        quantity="selectivity", unit="", facet="panel", zero=True, name="optimizer-switch",
    )  # fmt: skip


def regret(chapter: Chapter, found: pd.DataFrame) -> charts.Figure | None:
    """What the planner's choice costs over the sweep."""
    rows = []
    for layout in ATTRIBUTES:
        for cache in (WARM, COLD):
            own = scans.regret(chapter, found, layout, cache)
            if own is not None:
                rows += [{"x": row.selectivity, "value": row.ratio, "low": row.low, "high": row.high, "kind": "measured", "series": "", "panel": f"{layout}, {cache}"} for row in own.itertuples()]
    if not rows:
        return None
    frame = _series(rows)
    return charts.lines(
        frame,
        question="What does the planner's choice cost, where another scan would have been faster?",
        caption="Time of the planned scan over that of the fastest one: a ratio of one where the planner is right.",
        description=narrate.described(frame),
        x_quantity="selectivity", x_unit="", quantity="time relative to the fastest scan", unit="", facet="panel", name="optimizer-regret",
    )  # fmt: skip


def tuned(moved: pd.DataFrame, fitted: pd.DataFrame) -> charts.Figure:
    """The planned switch-over over cost settings, beside the measured ones."""
    rows = [{"x": row.factor, "value": row.switch, "kind": "measured", "series": row.knob, "panel": row.layout} for row in moved.itertuples()]
    ends = moved["factor"].min(), moved["factor"].max()
    for row in fitted.itertuples():
        rows += [{"x": x, "value": row.measured, "low": row.low, "high": row.high, "kind": "measured", "series": f"best, {row.cache}", "panel": row.layout} for x in ends]
    frame = _series(rows)
    return charts.lines(
        frame,
        question="Can the planned switch-over be moved to the best one?",
        caption="The planned switch-over as costs are multiplied: random_page_cost alone, or everything that a processor does. Level lines with bands are where the "
        "sequential scan was measured to become the faster one.",
        description=narrate.described(frame),
        x_quantity="factor on the costs", x_unit="", quantity="switch-over, in selectivity", unit="", facet="panel", log_x=True, zero=True, name="optimizer-tuned",
    )  # fmt: skip


def join_times(chapter: Chapter) -> charts.Figure | None:
    """Time of each join method over that of the hash join, in print and at both sizes."""
    printed = published.derived("optimizer_joins")
    then = printed.pivot(index="query", columns="method", values="time_s")
    sizes, rows = joins.sizes(chapter), []
    for size in (REPORT, LARGE):
        panel = f"{sizes[size]:,} tuples each"
        for query in joins.EQUAL:
            for method in (MERGE, NESTED):
                label = f"query {query}: {method}"
                if pd.notna(then.at[query, method]):
                    rows.append(charts.row(label, "printed", then.at[query, method] / then.at[query, HASH], panel=panel))
                here = chapter.table(joins.experiment(size), joins.metric(query))
                if not here.empty and method in here and here[method].notna().all():
                    rows.append(charts.row(label, "measured", joins.over(chapter, query, method, HASH, size), panel=panel))
    frame = pd.DataFrame(rows)
    if not (frame["kind"] == "measured").any():
        return None
    return charts.compare_to_print(
        frame,
        question="How do merge join and nested loop compare with the hash join?",
        caption="Time over that of the hash join for the four joins by equality; queries 2 and 4 have B-trees, queries 3 and 4 a restriction. The printed numbers, of "
        "relations of a thousand tuples, stand in both panels; that of query 3's nested loop is a lower bound.",
        description=narrate.described(frame),
        quantity="time relative to the hash join", unit="", reference=1, reference_label="hash join", facet="panel", log=True, name="optimizer-joins",
    )  # fmt: skip


def moved_range(found: pd.DataFrame | None) -> charts.Figure:
    """Estimated rows of a one-row range wherever it lies; the print alone where the fault can't be put into the server."""
    printed = published.derived("optimizer_ranges").loc[["q1", "q3"]]
    rows = [{"x": row.bound, "value": row.rows, "kind": "measured", "series": row.fault} for row in (found.itertuples() if found is not None else ())]
    rows += [{"x": row.bound, "value": row.product_tuples, "kind": "printed", "series": ""} for row in printed.itertuples()]
    frame = _series(rows)
    return charts.lines(
        frame,
        question="How many rows does the planner expect of a range that holds one?",
        caption="A range of one tuple moved through the relation: PostgreSQL as it is, and with the bounds' selectivities multiplied as in 1990. Printed are the products "
        "of the report's equations for its queries 1 and 3.",
        description=narrate.described(frame if found is None else frame.iloc[::3]),
        x_quantity="lower bound of the range", x_unit="", quantity="estimated rows", unit="", log_y=True, name="optimizer-range",
    )  # fmt: skip


def interpolation(found: pd.DataFrame | None) -> charts.Figure | None:
    """How far estimates are off at worst."""
    if found is None:
        return None
    rows = [
        charts.row(row.estimator, "simulated" if row.estimator == ranges.FIGURE else "measured", row.largest, panel=f"{row.attribute} values")
        for row in ranges.worst(found).itertuples()
    ]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How far off is a range estimate made from the least and the greatest value alone?",
        caption="The worst of ninety-nine estimates of attribute < constant, as a factor in whichever direction: by the report's equations (computed), and by PostgreSQL "
        "with histograms of one, ten and a hundred parts.",
        description=narrate.described(frame),
        quantity="largest error, as a factor", unit="", reference=1, reference_label="exact", facet="panel", log=True, name="optimizer-interpolation",
    )  # fmt: skip


def restriction(chapter: Chapter) -> charts.Figure | None:
    """Nested loop and merge join over hash join as a restriction widens."""
    found = joins.restriction_ratios(chapter)
    if found is None:
        return None
    frame = _series(
        {"x": row.share, "value": row.ratio, "low": row.low, "high": row.high, "kind": "measured", "series": row.method} for row in found.itertuples()
    )
    return charts.lines(
        frame,
        question="How narrow must a restriction be for the nested loop to win?",
        caption="Query 4 at the larger size with a restriction of growing width, its result counted: time over that of the hash join.",
        description=narrate.described(frame),
        x_quantity="share of the relation that qualifies", x_unit="", quantity="time relative to the hash join", unit="", log_x=True, log_y=True, name="optimizer-restriction",
    )  # fmt: skip


def prices(chapter: Chapter, found: pd.DataFrame | None) -> charts.Figure | None:
    """What a wrong assumption about clustering costs."""
    words = {CLUSTERED: "taken as not clustered", SHUFFLED: "taken as clustered"}  # what each is not
    rows = [
        charts.row(cache, "measured", interval, panel=words[layout])
        for layout in ATTRIBUTES for cache in (WARM, COLD) if (interval := suggestions.price(chapter, found, layout, cache)) is not None
    ]  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does it cost to plan with the wrong assumption about clustering?",
        caption="Time of the whole sweep of selectivities with the scans that the planner takes when it is told the wrong order of tuples, over that with its own choices. What is taken as clustered isn't, and the reverse.",
        description=narrate.described(frame),
        quantity="time relative to the planner's own choices", unit="", reference=1, reference_label="no harm", facet="panel", name="optimizer-assumption",
    )  # fmt: skip


def plan_diagram(found: pd.DataFrame | None, panel: str = NONE) -> charts.Figure | None:
    """The plans over the grid, as the server is or with the constant selectivity of 1990."""
    if found is None or panel not in set(found["panel"]):
        return None
    own = found[found["panel"] == panel]
    shares = own.groupby("plan").agg(title=("title", "first"), share=("plan", lambda plans: len(plans) / len(own))).sort_values("share", ascending=False)
    words = "; ".join(f"{row.plan.replace(diagrams.INDENT, '').replace(chr(10), ', ')}: {row.share:.1%} of the grid" for row in shares.reset_index().itertuples())
    question = {
        NONE: "Which plan does the optimizer take, as each side of a join is restricted?",
        CONSTANT: "Which plan would it take with the selectivity of 1990?",
    }[panel]
    return charts.plan_diagram(
        own,
        question=question,
        caption=f"One plan for each of {len(own):,} pairs of selectivities, planned and not executed. Click a region for its tree; the tooltip gives its costs.",
        description=f"{narrate.count(len(shares), 'plan')}. {words}.",
        x_quantity="selectivity on tenk1", y_quantity="selectivity on tenk2", name="optimizer-plans" + ("" if panel == NONE else "-1990"),
    )  # fmt: skip
