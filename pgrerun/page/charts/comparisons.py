"""Cases beside each other: values with intervals, parts of a whole, every repetition."""

import json

import altair as alt
import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import (
    CATEGORIES,
    GREY,
    MARKS,
    Axis,
    Figure,
    Reference,
    Words,
    figure_of,
)
from pgrerun.record import statistics

_NARROWEST, _TOTAL = 190, 7.5  # pixels of bars on a phone, and of a letter of their totals


def compare(
    frame: pd.DataFrame,
    words: Words,
    axis: Axis,
    *,
    reference: Reference | None = None,
    own_scales: bool = False,
    joined: bool = False,
) -> Figure:
    """Numbers of different provenance for the same things, one row per thing.

    `frame` has `label` (the rung or case), `kind` (one of `MARKS`), `value`, and
    where there is an interval `low` and `high`; rows are drawn in the order in
    which labels first occur. A column `panel` splits the chart into
    panels below each other (from four on two by two), with `own_scales` each with an axis of its
    own (panels of different units; their names then say the unit). With `joined` a thing's numbers
    lie on one line that leads from the least to the greatest, and a column `series` gives them
    colours and a legend. So they do where a lane for each kind would make the chart too tall.
    ValueError if a column is missing or a kind unknown.
    """
    frame = encodings.closed(frame)
    rows = encodings.tidy(frame, ["label", "kind", "value"])
    if own_scales:
        rows = encodings.with_extents(rows)
    things, lines = rows["lines"].nunique(), int(rows["lines"].str.count("\n").max()) + 1
    lanes = max(22, 15 * rows["provenance"].nunique(), 17 * lines)
    wished = lanes * things
    more = encodings.X_TITLE if own_scales and axis.quantity else 0
    if encodings.fitting(rows, wished, 0, words.caption, more) < wished:
        joined = True
    each = max(24, 17 * lines) if joined else lanes
    height = encodings.fitting(rows, each * things, 14 * things, words.caption, more)
    if height < encodings.NAME_LINE * lines * things:  # names in lines would cover each other
        rows["lines"] = rows["label"]
    layers = _joined(rows, axis) if joined else _points_and_intervals(rows, axis)
    if reference is not None:
        layers = encodings.rule(reference) + layers
    chart = encodings.panels(alt.layer(*layers), rows, height)
    if own_scales:
        chart = chart.resolve_scale(x="independent")
    headings = {"label": "case", "series": "which", "provenance": "provenance"}
    columns = encodings.columns(rows, headings, axis)
    return figure_of(chart, words, columns, narrate.described(frame))


def _said_of(axis: Axis) -> dict[str, str]:
    """What a point's tooltip says."""
    return {
        "label": "",
        "series": "",
        "provenance": "",
        "value": axis.heading,
        "low": "from",
        "high": "to",
    }


def _points_and_intervals(rows: pd.DataFrame, axis: Axis) -> list[alt.Chart]:
    """A lane for each kind of number below a thing's name."""
    kinds = encodings.present(rows)
    tooltip = encodings.tooltip(rows, _said_of(axis))
    offset = alt.YOffset("provenance:N", sort=kinds)
    base = alt.Chart().encode(y=encodings.rows_axis(rows), yOffset=offset, tooltip=tooltip)
    value, low = (encodings.x_axis(field, axis) for field in ("value", "low"))
    points = base.mark_point(size=85, strokeWidth=1.9, opacity=1)
    marks = encodings.provenance(kinds)
    layers = [points.encode(x=value, **marks)]
    if {"low", "high"} <= set(rows.columns):
        known = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        interval = known.mark_rule(strokeWidth=2)
        layers.insert(0, interval.encode(x=low, x2="high:Q", stroke=marks["stroke"]))
    return layers


def _joined(rows: pd.DataFrame, axis: Axis) -> list[alt.Chart]:
    """All of a thing's numbers on one line, from the least to the greatest."""
    kinds = encodings.present(rows)
    y = encodings.rows_axis(rows)
    x = encodings.x_axis("value", axis)
    ends = alt.Chart().transform_aggregate(
        least="min(value)", most="max(value)", groupby=["lines", *encodings.by_panel(rows)]
    )
    least = encodings.x_axis("least", axis)
    span = ends.mark_rule(strokeWidth=2.5, color=GREY, opacity=0.5)
    base = alt.Chart().encode(y=y, tooltip=encodings.tooltip(rows, _said_of(axis)))
    points = base.mark_point(size=85, strokeWidth=1.9, opacity=1)
    marks = encodings.provenance(kinds)
    if "series" in rows:
        names = list(dict.fromkeys(rows["series"]))
        hues = alt.Scale(domain=names, range=list(CATEGORIES[: len(names)]))
        shown = encodings.legend("top", 4)
        if len(kinds) == 1:  # its marks are those of the chart
            shown["symbolType"] = encodings.shape_of(kinds[0])
            marks["shape"].legend = None
        named = alt.Color("series:N", title=None, scale=hues, legend=shown)
        marks = {"color": named, "shape": marks["shape"]}
    layers = [span.encode(y=y, x=least, x2="most:Q"), points.encode(x=x, **marks)]
    if {"low", "high"} <= set(rows.columns):
        low = encodings.x_axis("low", axis)
        known = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        interval = known.mark_rule(strokeWidth=5, opacity=0.35)
        colour = {"color": marks["color"]} if "color" in marks else {"stroke": marks["stroke"]}
        layers.insert(1, interval.encode(x=low, x2="high:Q", **colour))
    return layers


def stacked(
    frame: pd.DataFrame, words: Words, axis: Axis, *, reference: Reference | None = None
) -> Figure:
    """What a whole consists of: one bar per case, its segments the parts.

    `frame` has `label` (the bar: "report's bound", "PostgreSQL 18"), `part` (the segment:
    "accounts: index leaf"), `value` and `kind` (one of `MARKS`; a bar has one); a column `panel`
    splits the chart into stacked panels ("read", "written"). Segments stack in the order in which
    they first occur; the total stands at the bar's end, unless each bar is a whole of shares.
    Printed and simulated bars are outlined (simulated: dashed), measured ones are filled.
    `reference` draws a labelled rule.
    """
    frame = encodings.closed(frame)
    rows = encodings.tidy(frame, ["label", "part", "value", "kind"])
    segments = list(dict.fromkeys(rows["part"]))
    rows["order"] = rows["part"].map(segments.index)
    longest = rows.groupby([*encodings.by_panel(rows), "label"])["value"].sum().max()
    shares = _shares(rows)
    room = 0 if shares else _TOTAL * len(f"{longest:.4g} ") / _NARROWEST
    top = max(longest / (1 - room), 1.12 * reference.value if reference else 0)
    *bars, halos, totals = _bars(rows, segments, axis, top)
    rule = encodings.rule(reference) if reference else []
    layers = [*bars, *rule, *([] if shares else [halos, totals])]  # the rule runs behind the totals
    cases = rows["lines"].nunique()
    height = encodings.fitting(rows, 34 * cases, 16 * cases, words.caption)
    chart = encodings.panels(alt.layer(*layers), rows, height)
    headings = {"label": "case", "part": "part", "provenance": "provenance"}
    columns = encodings.columns(rows, headings, axis)
    spoken = frame.assign(label=frame["label"].astype(str) + ", " + frame["part"])
    return figure_of(chart, words, columns, narrate.described(spoken))


def _shares(rows: pd.DataFrame) -> bool:
    """Whether the parts of each bar are shares, which add up to 1."""
    totals = rows.groupby([*encodings.by_panel(rows), "label", "kind"])["value"].sum()
    return bool((totals.sub(1).abs() < 1e-6).all())


def _bars(rows: pd.DataFrame, segments: list[str], axis: Axis, top: float) -> list[alt.Chart]:
    """Filled bars, washes and outlines of hollow ones, each bar's total's halo and total; up to
    `top`.
    """
    colours = [CATEGORIES[i % len(CATEGORIES)] for i in range(len(segments))]
    colour = alt.Color(
        "part:N",
        title=None,
        sort=segments,
        scale=alt.Scale(domain=segments, range=colours),
        legend=encodings.legend("bottom", 3),
    )
    y = encodings.rows_axis(rows, grid=False)
    fields = {"label": "", "part": "", "value": axis.quantity, "provenance": ""}
    base = alt.Chart().encode(
        y=y,
        x=encodings.x_axis("sum(value)", axis, domain=[0, top], nice=False),
        order="order:Q",
        color=colour,
        tooltip=encodings.tooltip(rows, fields),
    )
    outlined = [f"datum.provenance === {json.dumps(m.title)}" for m in MARKS.values() if not m.fill]
    hollow = " || ".join(outlined)
    height = {"band": 0.62}
    filled = base.transform_filter(f"!({hollow})").mark_bar(height=height)
    # A hollow bar keeps a wash of colour, so that its segments can be told apart.
    washes = base.transform_filter(hollow).mark_bar(height=height, opacity=0.2)
    outlines = base.transform_filter(hollow).mark_bar(height=height, filled=False, strokeWidth=1.5)
    dashed = outlines.encode(strokeDash=encodings.dash(encodings.present(rows), named=False))
    total = alt.Text("sum(value):Q", format=",.4~r")
    halos, totals = (
        alt.Chart().mark_text(align="left", dx=5, **look).encode(y=y, x="sum(value):Q", text=total)
        for look in ({"style": "halo"}, {})
    )
    return [filled, washes, dashed, halos, totals]


def observations(frame: pd.DataFrame, words: Words, axis: Axis) -> Figure:
    """Every repetition as a tick, above the median and its interval.

    `frame` has `label` (the variant), `kind` (one of `MARKS`) and `value`, optionally `block`;
    nothing is left out of the picture.
    """
    frame = encodings.closed(frame)
    by = [*encodings.by_panel(frame), "label", "kind"]
    repetitions = encodings.tidy(frame, [*by, "value"])
    medians = encodings.tidy(_medians(repetitions, by), [*by, "value", "low", "high"])
    parts = [repetitions.assign(row="repetition"), medians.assign(row="median")]
    rows = pd.concat(parts, ignore_index=True)
    kinds = encodings.present(rows)
    rows["lane"] = rows["provenance"] + ", " + rows["row"]
    lanes = [f"{kind}, {row}" for kind in kinds for row in ("repetition", "median")]
    chart = _ticks_and_medians(rows, lanes, kinds, axis)
    ticks = len(lanes) * rows["lines"].nunique()
    height = encodings.fitting(rows, 20 * ticks, 10 * ticks, words.caption)
    headings = {"label": "case", "provenance": "provenance", "row": "what", "block": "block"}
    columns = encodings.columns(rows, headings, axis)
    drawn = encodings.panels(chart, rows, height)
    return figure_of(drawn, words, columns, narrate.described(medians))


def _ticks_and_medians(
    rows: pd.DataFrame, lanes: list[str], kinds: list[str], axis: Axis
) -> alt.LayerChart:
    value, low = (encodings.x_axis(field, axis) for field in ("value", "low"))
    fields = {"label": "", "provenance": "", "block": "block", "value": axis.heading}
    tooltip = encodings.tooltip(rows, fields | {"low": "from", "high": "to"})
    offset = alt.YOffset("lane:N", sort=lanes)
    base = alt.Chart().encode(y=encodings.rows_axis(rows), yOffset=offset, tooltip=tooltip)
    marks = encodings.provenance(kinds)
    # a tick has no inside to fill
    ticks = base.transform_filter("datum.row === 'repetition'").mark_point(
        shape="M0,-1V1", size=170, strokeWidth=1.5, opacity=0.75
    )
    median = base.transform_filter("datum.row === 'median'")
    return alt.layer(
        ticks.encode(x=value, stroke=marks["stroke"]),
        median.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q", stroke=marks["stroke"]),
        median.mark_point(size=70, strokeWidth=1.9, opacity=1).encode(x=value, **marks),
    )


def _medians(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    def one(values: pd.Series) -> dict[str, float]:
        interval = statistics.median(values)
        return {"value": interval.estimate, "low": interval.low, "high": interval.high}

    groups = rows.groupby(by, sort=False)
    return pd.DataFrame([dict(zip(by, key)) | one(group["value"]) for key, group in groups])
