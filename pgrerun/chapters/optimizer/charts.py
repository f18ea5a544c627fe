"""The charts of the chapter: frames from the print and this run, and their words."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import queries
from pgrerun.chapters.optimizer.evidence import estimates, joins, scans, suggestions
from pgrerun.chapters.optimizer.experiments import diagrams
from pgrerun.chapters.optimizer.experiments.scans import STORED, timed_at
from pgrerun.chapters.optimizer.variants import (
    BITMAP,
    CLUSTERED,
    COLD,
    CONSTANT,
    HASH,
    INDEX,
    MERGE,
    MULTIPLIED,
    NESTED,
    NONE,
    SEQUENTIAL,
    SHUFFLED,
    WARM,
)
from pgrerun.page import charts, narrate
from pgrerun.record import printed, statistics

Row = dict[str, Any]


def _points(rows: pd.DataFrame, columns: dict[str, str], **same: Any) -> list[Row]:
    """Rows of a sweep: the frame's columns by their names on the chart, and what all have."""
    chosen = rows[list(columns)].rename(columns=columns)
    return chosen.assign(**same).to_dict("records")


def the_print() -> charts.Figure:
    """The first set in print: times and costs before and after the corrections."""
    first, revised = (printed.derived(f"optimizer_{name}") for name in ("set1", "revised"))
    found = first.set_index("selectivity") / 60
    found_panel, panel = "Figure 3.12: as found", "Figure 3.14: corrected"
    plans = revised["plan"].str.replace("seq.", "sequential")
    after = revised.assign(value=revised["time_s"] / 60, series=plans)
    names = {"selectivity": "x", "value": "value", "series": "series"}
    return charts.lines(
        [
            *charts.points(found["index_s"], "printed", series=INDEX, panel=found_panel),
            *charts.points(found["seq_s"], "printed", series=SEQUENTIAL, panel=found_panel),
            *_points(after, names, kind="printed", panel=panel),
        ],
        charts.Words(
            question=(
                "How long did the first set of optimizer tests take in 1990, by scan and"
                " selectivity?"
            ),
            caption=(
                "Printed times for storing a growing share of a relation of ten thousand tuples."
                " Before the corrections the index scan was always planned and the sequential scan"
                " forced; of the corrected run only the planned scans are printed."
            ),
            name="optimizer-print",
        ),
        charts.Axis("selectivity"),
        charts.Axis("time", "minutes", zero=True),
    )


def costs(planned: pd.DataFrame) -> charts.Figure:
    """Calculated costs of all scans, relative to the sequential one."""
    revised = printed.derived("optimizer_revised")
    in_print = revised[revised["plan"].str.startswith("index")]
    in_print = in_print.assign(ratio=in_print["cost"] / revised["cost"].max(), panel=CLUSTERED)
    sequential = planned[planned["method"] == SEQUENTIAL].set_index(["layout", "selectivity"])
    here = planned[planned["method"] != SEQUENTIAL].set_index(["layout", "selectivity"])
    here = here.assign(ratio=here["cost"] / sequential["cost"].reindex(here.index)).reset_index()
    names = {"selectivity": "x", "ratio": "value"}
    rows = _points(in_print, names | {"plan": "series", "panel": "panel"}, kind="printed")
    own = names | {"method": "series", "layout": "panel"}
    return charts.lines(
        rows + _points(here, own, kind="measured"),
        charts.Words(
            question="What does the planner think that each scan costs?",
            caption=(
                "Calculated cost over that of the sequential scan, as printed (after the"
                " corrections) and by the server under test, in a relation of the report's size."
                " Above the dashed line, at one, the sequential scan is the cheaper one."
            ),
            name="optimizer-costs",
        ),
        charts.Axis("selectivity"),
        charts.Axis("cost relative to the sequential scan", zero=True),
        own_scales=True,
        reference=charts.Reference(1),
    )


def scan_times(chapter: Chapter, cache: str) -> charts.Figure:
    """Measured times of index scan and bitmap scan over that of the sequential scan."""
    rows = []
    if cache == COLD:
        names = {"selectivity": "x", "index_over_seq": "value"}
        same = {"kind": "printed", "series": INDEX, "panel": CLUSTERED}
        rows = _points(printed.derived("optimizer_set1"), names, **same)
    for (layout, state), seconds in scans.sweeps(chapter).items():
        for selectivity in timed_at(chapter) if state == cache else ():
            at = seconds.xs(selectivity, axis=1, level=1)
            for method in (INDEX, BITMAP):
                seed = chapter.parameters.seed
                ratio = statistics.ratio(at[method], at[SEQUENTIAL], seed=seed)
                rows += charts.points({selectivity: ratio}, "measured", series=method, panel=layout)
    about = {WARM: "with the relation in memory", COLD: "with the relation in no cache"}[cache]
    return charts.lines(
        rows,
        charts.Words(
            question=f"How long does each scan really take, {about}?",
            caption=(
                f"Time of each scan, {about}, over that of the sequential scan: median and interval"
                " over the blocks. Above the dashed line, at one, the sequential scan is the faster"
                " one. Here the result isn't stored, which takes the same time after any scan."
            ),
            name=f"optimizer-scans-{cache}",
        ),
        charts.Axis("selectivity"),
        charts.Axis("time relative to the sequential scan", log=True),
        own_scales=True,
        reference=charts.Reference(1),
    )


def stored(chapter: Chapter) -> charts.Figure:
    """Time of a sequential scan that stores, and of one that doesn't, over the narrowest's."""
    in_print = printed.derived("optimizer_set1")
    in_print = in_print.assign(ratio=in_print["seq_s"] / in_print["seq_s"].iloc[0])
    names = {"selectivity": "x", "ratio": "value"}
    rows = _points(in_print, names, kind="printed", series="stored")
    for series, state in (("stored", STORED), ("skipped", WARM)):
        growth = {at: scans.growth(chapter, state, at) for at in timed_at(chapter)}
        rows += charts.points(growth, "measured", series=series)
    return charts.lines(
        rows,
        charts.Words(
            question="Does a sequential scan take longer when more tuples qualify?",
            caption=(
                "Time of the sequential scan over that for the narrowest range: as printed, where"
                " the result was stored, and here, where it is stored or made and skipped. Each"
                " sweep begins with the narrowest range on a new connection, so whatever slows a"
                " connection's first scans is in the time that the others are divided by, and a"
                " line may fall for that alone."
            ),
            name="optimizer-stored",
        ),
        charts.Axis("selectivity"),
        charts.Axis("time relative to the narrowest range", zero=True),
    )


def switch_overs(planned: dict[str, float], best: pd.DataFrame) -> charts.Figure:
    """Planned and best switch-over, printed and here; `best` is of `evidence.scans`."""
    said = printed.table("optimizer_said")["value"]
    rows = [charts.row("planned", "printed", said["revised_switch"], panel=CLUSTERED)]
    # In print neither relation stayed in memory, and still a scan mostly computed.
    for cache in (WARM, COLD):
        label = f"best, {cache}"
        rows.append(charts.row(label, "printed", said["best_switch"], panel=CLUSTERED))
    for layout, switch in planned.items():
        rows.append(charts.row("planned", "measured", switch, panel=layout))
    for row in best.itertuples():
        rows.append(charts.row(f"best, {row.cache}", "measured", row.interval, panel=row.layout))
    order = {"planned": 0, f"best, {WARM}": 1, f"best, {COLD}": 2}
    panels = {CLUSTERED: 0, SHUFFLED: 1}
    rows.sort(key=lambda row: (panels[row["panel"]], order[row["label"]]))
    return charts.compare(
        rows,
        charts.Words(
            question="Where does the planner switch to the sequential scan, and where should it?",
            caption=(
                "Selectivity from which on the sequential scan is planned, and from which on it is"
                " the faster one: against the index scan where the relation is clustered, else"
                " against the bitmap scan. The one printed best stands in both rows."
            ),
            result=lambda _: _switches_result(planned, best),
            name="optimizer-switch",
        ),
        charts.Axis("selectivity", zero=True),
    )


def _switches_result(planned: dict[str, float], best: pd.DataFrame) -> str:
    """Where the planner switches in each relation, and where that would be right."""
    told = []
    for layout, switch in planned.items():
        right = [
            f"{narrate.interval(row.interval)} ({row.cache})"
            for row in best[best["layout"] == layout].itertuples()
        ]
        told.append(
            f"Where the relation is {layout}, the sequential scan is planned from a selectivity of"
            f" {narrate.number(switch, 2)} on"
            + (f", and is the faster one from {narrate.listed(right)} on." if right else ".")
        )
    return " ".join(told)


def regret(found: pd.DataFrame) -> charts.Figure:
    """What the planner's choice costs over the sweep, of `evidence.scans.regret`."""
    panels = found["layout"] + ", " + found["cache"]
    names = {"selectivity": "x", "ratio": "value", "low": "low", "high": "high"}
    rows = _points(found.assign(panel=panels), names | {"panel": "panel"}, kind="measured")
    return charts.lines(
        rows,
        charts.Words(
            question=(
                "What does the planner's choice cost, where another scan would have been faster?"
            ),
            caption=(
                "Time of the planned scan over that of the fastest one: a ratio of one where the"
                " planner is right."
            ),
            result=lambda _: _regret_result(found),
            name="optimizer-regret",
        ),
        charts.Axis("selectivity"),
        charts.Axis("time relative to the fastest scan"),
        reference=charts.Reference(1),
    )


def _regret_result(found: pd.DataFrame) -> str:
    """How often the fastest scan was planned, and the costliest choice."""
    worst = found.loc[found["ratio"].idxmax()]
    slower = int((found["low"] > 1).sum())
    return (
        f"Of {narrate.count(len(found), 'choice')} {narrate.number(slower)} are slower than the"
        f" fastest scan; the costliest takes {narrate.number(worst['ratio'])} times as long"
        f" ({worst['layout']}, {worst['cache']}, selectivity"
        f" {narrate.number(float(worst['selectivity']))})."
    )


def tuned(moved: pd.DataFrame, best: pd.DataFrame) -> charts.Figure:
    """The planned switch-over over cost settings, beside the measured ones."""
    names = {"factor": "x", "switch": "value", "knob": "series", "layout": "panel"}
    rows = _points(moved, names, kind="measured")
    for row in best.itertuples():
        level = dict.fromkeys((moved["factor"].min(), moved["factor"].max()), row.interval)
        rows += charts.points(level, "measured", series=f"best, {row.cache}", panel=row.layout)
    return charts.lines(
        rows,
        charts.Words(
            question="Can the planned switch-over be moved to the best one?",
            caption=(
                "The planned switch-over as costs are multiplied: random_page_cost alone, or"
                " everything that a processor does. Level lines with bands are where the sequential"
                " scan was measured to become the faster one."
            ),
            result=lambda _: _tuned_result(moved, best),
            name="optimizer-tuned",
        ),
        charts.Axis("factor on the costs", log=True),
        charts.Axis("switch-over, in selectivity", zero=True),
        keyed=True,
    )


def _tuned_result(moved: pd.DataFrame, best: pd.DataFrame) -> str:
    """How far each cost moves the switch-over in each relation, and whether as far as the best."""
    told = []
    for layout, rows in moved.sort_values("factor").groupby("layout", sort=False):
        paths = {knob: own["switch"] for knob, own in rows.groupby("knob", sort=False)}
        went = [
            f"with {knob} from {narrate.number(path.iloc[0], 2)} to"
            f" {narrate.number(path.iloc[-1], 2)}"
            for knob, path in paths.items()
        ]
        within = [
            f"of {_reaching(paths, row.estimate) or 'neither'} ({row.cache})"
            for row in best[best["layout"] == layout].itertuples()
        ]
        told.append(
            f"Where the relation is {layout}, the planned switch-over goes {narrate.listed(went)};"
            f" the best one is within reach {narrate.listed(within)}."
        )
    return " ".join(told)


def _reaching(paths: dict[str, pd.Series], target: float) -> str:
    """The costs by which a switch-over can be brought to the target."""
    return narrate.listed(
        [knob for knob, path in paths.items() if path.min() <= target <= path.max()]
    )


def join_times(chapter: Chapter) -> charts.Figure:
    """Time of each join method over that of the hash join, in print and at both sizes."""
    rows = []
    for size, tuples in queries.sizes(chapter).items():
        rows += _join_rows(chapter, size, panel=f"{tuples:,} tuples each")
    return charts.compare(
        rows,
        charts.Words(
            question="How do merge join and nested loop compare with the hash join?",
            caption=(
                "Time over that of the hash join for the four joins by equality; queries 2 and 4"
                " have B-trees, queries 3 and 4 a restriction. The printed numbers, of relations of"
                " a thousand tuples whose join was stored, stand in both panels; that of query 3's"
                " nested loop is a lower bound. Here nothing is stored, and at the larger size no"
                " nested loop without an index was run."
            ),
            name="optimizer-joins",
        ),
        charts.Axis("time relative to the hash join", log=True),
        reference=charts.Reference(1, "hash join"),
    )


def _join_rows(chapter: Chapter, size: str, panel: str) -> Iterator[Row]:
    """Of one size; nested loops that take too long weren't timed."""
    in_print = printed.derived("optimizer_joins")
    then = in_print.pivot(index="query", columns="method", values="time_s")
    for query in queries.EQUAL:
        for method in (MERGE, NESTED):
            label, ratio = f"query {query}: {method}", then.at[query, method] / then.at[query, HASH]
            if pd.notna(ratio):
                yield charts.row(label, "printed", ratio, panel=panel)
            if method == MERGE or size == queries.SMALL or query not in queries.UNINDEXED:
                ratio = joins.over(chapter, query, method, HASH, size)
                yield charts.row(label, "measured", ratio, panel=panel)


def moved_range(sweep: pd.DataFrame) -> charts.Figure:
    """Estimated rows of a one-row range wherever it lies."""
    in_print = printed.derived("optimizer_ranges").loc[["q1", "q3"]]
    own = {"bound": "x", "rows": "value", "fault": "series"}
    rows = _points(sweep, own, kind="measured")
    names = {"bound": "x", "product_tuples": "value"}
    rows += _points(in_print, names, kind="printed", series=MULTIPLIED)
    return charts.lines(
        rows,
        charts.Words(
            question="How many rows does the planner expect of a range that holds one?",
            caption=(
                "A range of one tuple moved through the relation: PostgreSQL as it is, and with the"
                " bounds' selectivities multiplied as in 1990. Printed are the products of the"
                " report's equations for its queries 1 and 3."
            ),
            name="optimizer-range",
        ),
        charts.Axis("lower bound of the range"),
        charts.Axis("estimated rows", log=True),
    )


def interpolation(interpolated: pd.DataFrame) -> charts.Figure:
    """How far estimates are off at worst."""
    worst = estimates.worst(interpolated)
    frame = worst.assign(kind="measured", panel=worst["attribute"] + " values")
    frame = frame.rename(columns={"estimator": "label", "largest": "value"})
    return charts.compare(
        frame[["label", "kind", "value", "panel"]],
        charts.Words(
            question=(
                "How far off is a range estimate made from the least and the greatest value alone?"
            ),
            caption=(
                "The worst of ninety-nine estimates of attribute < constant, as a factor in"
                " whichever direction: by PostgreSQL told the least and the greatest value, as"
                " POSTGRES was, and with histograms of one, ten and a hundred parts."
            ),
            name="optimizer-interpolation",
        ),
        charts.Axis("largest error, as a factor", log=True),
        reference=charts.Reference(1, "exact"),
    )


def prices(chapter: Chapter, assumed: pd.DataFrame) -> charts.Figure:
    """What a wrong assumption about clustering costs."""
    # what each layout is taken for, and is not
    panels = {CLUSTERED: "taken as not clustered", SHUFFLED: "taken as clustered"}
    rows = [
        charts.row(cache, "measured", price, panel=panels[layout])
        for (layout, cache), price in suggestions.prices(chapter, assumed).items()
    ]
    return charts.compare(
        rows,
        charts.Words(
            question="What does it cost to plan with the wrong assumption about clustering?",
            caption=(
                "Time of the whole sweep of selectivities with the scans that the planner takes"
                " when it is told the wrong order of tuples, over that with its own choices. What"
                " is taken as clustered isn't, and the reverse."
            ),
            name="optimizer-assumption",
        ),
        charts.Axis("time relative to the planner's own choices"),
        reference=charts.Reference(1, "no harm"),
    )


_DIAGRAMS = {
    NONE: "Which plan does the optimizer take, as each side of a join is restricted?",
    CONSTANT: "Which plan would it take with the selectivity of 1990?",
}


_SCANS = {
    "Seq Scan": "full",
    "Index Scan": "index",
    "Index Only Scan": "index",
    "Bitmap Heap Scan": "bitmap",
}


def _scans(plan: str) -> str:
    """By which scan a plan's tree reads each relation: ", tenk1 full, tenk2 bitmap"."""
    told = []
    for line in plan.replace(diagrams.INDENT, "").splitlines():
        node = next((node for node in _SCANS if line.startswith(f"{node} ")), None)
        if node:
            relation = line.removeprefix(f"{node} ").partition(" using ")[0]
            told.append(f", {relation} {_SCANS[node]}")
    return "".join(told)


def plan_diagram(diagram: pd.DataFrame, panel: str = NONE) -> charts.Figure:
    """The plans over the grid, as the server is or with the constant selectivity of 1990."""
    own = diagram[diagram["panel"] == panel]
    shares = own["plan"].value_counts(normalize=True)
    words = [
        f"{plan.replace(diagrams.INDENT, '').replace(chr(10), ', ')}: {share:.1%} of the grid"
        for plan, share in shares.items()
    ]
    return charts.plan_diagram(
        own.assign(title=own["title"] + own["plan"].map(_scans)),
        charts.Words(
            question=_DIAGRAMS[panel],
            caption=(
                f"{narrate.count(len(shares), 'plan')} for {len(own):,} pairs of selectivities, the"
                f" most frequent for {shares.iloc[0]:.0%} of them; none was executed. The legend"
                " names each relation with the scan that reads it, second the one that is hashed or"
                " that a nested loop comes back to. Both axes are of the square root. Click a"
                " region for its tree; the tooltip gives its costs."
            ),
            name="optimizer-plans" + ("" if panel == NONE else "-1990"),
            description=f"{narrate.count(len(shares), 'plan')}. {'; '.join(words)}.",
        ),
        charts.Axis("selectivity on tenk1"),
        charts.Axis("selectivity on tenk2"),
    )
