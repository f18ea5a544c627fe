"""Values over an axis: a sweep, and what became of printed numbers."""

import math

import altair as alt
import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import GREY, MARKS, Axis, Figure, Reference, Words, figure_of
from pgrerun.page.charts.rows import Rows, together

_LINES_HEIGHT, _NAME_HEIGHT = 260, 14  # pixels of a panel of lines, and of a name at a line's end


def lines(
    frame: Rows, words: Words, x_axis: Axis, axis: Axis, *, own_scales: bool = False
) -> Figure:
    """A sweep: `value` over `x`, one line per `series` and kind, bands where intervals are.

    `frame` has `x`, `value`, `kind` (one of `MARKS`), optionally `series`, `low` and `high`; with
    `own_scales` panels have vertical axes of their own. Colour tells the kind here as everywhere; a
    series' name stands at the end of its line.
    """
    frame = together(frame)
    facet = encodings.panel_of(frame)
    measure = encodings.measure(axis.quantity, axis.unit)
    x_measure = encodings.measure(x_axis.quantity, x_axis.unit)
    rows = encodings.tidy(frame, ["x", "value", "kind"] + ([facet] if facet else []))
    if "series" not in rows:
        rows["series"] = ""
    if own_scales and facet and {"low", "high"} <= set(rows.columns):
        # bands without a point in a panel would leave that panel's own scale without an extent
        bare = ~rows["low"].notna().groupby(rows[facet]).transform("any")
        rows[["low", "high"]] = rows[["low", "high"]].mask(bare, rows["value"], axis=0)
    kinds = encodings.present(rows)
    rows["named"] = _line_ends(rows, [facet] if facet else [])
    rows["lift"] = _lifts(rows, facet, own_scales, axis.log, axis.zero)
    at = sorted(rows["x"].unique())
    ticks = {"values": at} if len(at) <= 10 else {"tickCount": 6}
    ruler = alt.Axis(grid=False, **ticks)
    x = alt.X("x:Q", title=x_measure, scale=encodings.scale(x_axis.log), axis=ruler)
    scale = encodings.scale(axis.log, axis.zero)
    y = alt.Y("value:Q", title=measure, scale=scale, axis=alt.Axis(tickCount=6))
    base = alt.Chart().encode(x=x, detail=["series:N", "provenance:N"])
    paths = base.mark_line(strokeWidth=1.6).encode(
        y=y, stroke=encodings.stroke(kinds), strokeDash=encodings.dash(kinds)
    )
    points = base.mark_point(size=60, strokeWidth=1.8, opacity=1).encode(
        y=y, tooltip=encodings.tooltip(rows, _fields(x_axis, axis)), **encodings.provenance(kinds)
    )
    named = rows["named"].any()
    layers = [*_bands(base, rows, measure, scale), paths, points]
    if named:
        layers.append(_names(base, y))
    series = {"series": "series"} if named else {}
    headings = {facet or "": facet or ""} | series | {"provenance": "provenance", "x": x_measure}
    panels = encodings.panels(alt.layer(*layers), rows, facet, _LINES_HEIGHT)
    if own_scales:
        panels = panels.resolve_scale(y="independent")
    columns = encodings.columns(rows, headings, measure)
    return figure_of(panels, words, columns, _line_points(frame, x_axis.unit))


def _bands(base: alt.Chart, rows: pd.DataFrame, measure: str, scale: alt.Scale) -> list[alt.Chart]:
    """An area between the ends of the intervals, where there are any."""
    if not {"low", "high"} <= set(rows.columns) or rows["low"].isna().all():
        return []
    # colours as they are: a scale here would swallow the points' legend
    rows["band"] = rows["kind"].map({kind: mark.colour for kind, mark in MARKS.items()})
    low = alt.Y("low:Q", title=measure, scale=scale)
    colour = alt.Color("band:N", scale=None, legend=None)
    area = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.16)
    return [area.encode(y=low, y2="high:Q", color=colour)]


def _names(base: alt.Chart, y: alt.Y) -> alt.Chart:
    """The series' names, each beside the end of its line."""
    place = {"align": "right", "baseline": "bottom", "dx": 4, "dy": alt.ExprRef("-8 - datum.lift")}
    text = base.transform_filter("datum.named").mark_text(fontWeight="bold", **place)
    return text.encode(y=y, text="series:N")


def slopes(
    frame: pd.DataFrame,
    words: Words,
    x_axis: Axis,
    axis: Axis,
    *,
    reference: Reference | None = None,
) -> Figure:
    """What became of many numbers: a thin line each from the printed to the measured, log axis.

    `frame` has `series` (the line), `x` (a year), `value` (positive), `kind` (one of `MARKS`),
    `verdict` (what became of it), `colour` (of the line) and `strong` (whether it stands out),
    optionally `low` and `high`. Lines carry no names; the tooltip and the table do. `reference`
    draws a labelled horizontal rule.
    """
    rows = encodings.tidy(frame, ["series", "x", "value", "kind", "verdict", "colour", "strong"])
    kinds = encodings.present(rows)
    x = alt.X(
        "x:Q",
        title=None,
        scale=alt.Scale(nice=False, padding=16),
        axis=alt.Axis(values=sorted(rows["x"].unique()), format="d", grid=False),
    )
    y = {
        "scale": encodings.scale(log=True),
        "title": axis.quantity,
        "axis": alt.Axis(tickCount=6, format="~g"),
    }
    weight = {"condition": {"test": "datum.strong", "value": 0.85}, "value": 0.28}
    fields = _fields(x_axis, axis) | {"verdict": ""}
    base = alt.Chart().encode(
        x=x, detail="series:N", opacity=weight, tooltip=encodings.tooltip(rows, fields)
    )
    layers = [
        base.mark_line(strokeWidth=1.7).encode(
            y=alt.Y("value:Q", **y), color=alt.Color("colour:N", scale=None, legend=None)
        ),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5)
        .encode(y=alt.Y("low:Q", **y), y2="high:Q", stroke=encodings.stroke(kinds)),
        base.mark_point(size=60, strokeWidth=1.7).encode(
            y=alt.Y("value:Q", **y), **encodings.provenance(kinds)
        ),
    ]
    if reference is not None:
        rule, name = _across(reference)
        layers = [rule, *layers, name]
    headings = {"series": "claim", "provenance": "provenance", "x": x_axis.quantity}
    columns = encodings.columns(rows, headings | {"verdict": "verdict"}, axis.quantity)
    spoken = frame.assign(label=frame["series"] + " " + frame["x"].astype(str))
    chart = encodings.panels(alt.layer(*layers), rows, None, 380)
    return figure_of(chart, words, columns, narrate.described(spoken))


def _across(reference: Reference) -> tuple[alt.Chart, alt.Chart]:
    """A horizontal rule, and its name at the left."""
    one, at = alt.Chart(alt.Data(values=[{}])), alt.datum(reference.value)
    rule = one.mark_rule(color=GREY, strokeDash=[5, 3], strokeWidth=1.3)
    text = one.mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=11)
    return rule.encode(y=at), text.encode(y=at, x=alt.value(0), text=alt.value(reference.label))


def _fields(x_axis: Axis, axis: Axis) -> dict[str, str]:
    """What a point's tooltip says, and how it is called there."""
    first = {"series": "", "provenance": "", "x": x_axis.quantity, "value": axis.quantity}
    return first | {"low": "from", "high": "to"}


def _line_points(frame: pd.DataFrame, unit: str) -> str:
    places = frame["x"].map("{:g}".format) + (f" {unit}" if unit else "")
    if "series" in frame:
        places = (frame["series"].astype(str) + " at " + places).str.removeprefix(" at ")
    return narrate.described(frame.assign(label=places))


def _line_ends(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """True on the row beside which the name of its series is written, if it has one."""
    named = pd.Series(False, index=rows.index)
    # beside the reader's own line rather than the print's
    later = [
        "gathered",
        "simulated",
        "printed",
        "published-slowed",
        "published",
        "slowed",
        "measured",
    ]
    rank = rows["kind"].map(later.index)
    order = rows.assign(rank=rank).sort_values(["rank", "x"])
    ends = order[order["series"].astype(str) != ""].groupby([*by, "series"]).tail(1).index
    named.loc[ends] = True
    return named


def _lifts(
    rows: pd.DataFrame, facet: str | None, own_scales: bool, log: bool, zero: bool
) -> pd.Series:
    """Pixels by which each line's name moves up, so that none covers another's."""
    lifts = pd.Series(0.0, index=rows.index)
    height = rows["value"].where(rows["value"] > 0).map(math.log) if log else rows["value"]
    for _, panel in rows.groupby(facet) if facet else [("", rows)]:
        seen = height[panel.index] if own_scales else height
        least, most = (
            (min(seen.min(), 0), max(seen.max(), 0))
            if zero and not log
            else (seen.min(), seen.max())
        )
        pixels = (height - least) * _LINES_HEIGHT / ((most - least) or 1)
        for _, ends in panel[panel["named"]].groupby("x"):
            free = -math.inf
            for end in pixels[ends.index].sort_values().index:
                lifts[end] = max(0.0, free - pixels[end])
                free = pixels[end] + lifts[end] + _NAME_HEIGHT
    return lifts
