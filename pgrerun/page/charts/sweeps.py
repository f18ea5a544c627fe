"""Values over an axis: a sweep, and one number over another."""

import math
import textwrap
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import GREY, MARKS, Axis, Figure, Reference, Words, figure_of

_COLOURS = {kind: mark.colour for kind, mark in MARKS.items()}
_HALO = {"style": "halo"}  # behind a name, in the page's colour: it may lie over lines
_LINES_HEIGHT, _NAME_HEIGHT = 260, 16  # pixels of a panel of lines, and of a name at a line's end
_ABOVE, _REACH = 8, 40  # of a name above the end of its line; of how far it may move away
_SPOKEN = 8  # points of a line that are read aloud
# of a point; a hollow one shows where it lies on a filled one
_SIZE = "datum.kind === 'printed' ? 150 : 60"
_SIDE_BY_SIDE = 3  # panels from which on two stand beside each other: lines need height
_LEAST_HEIGHT, _UPRIGHT = 66, 6.4  # of a panel among many; of a letter of an axis' title
_SQUARE, _NARROW, _LETTER = 380, 300, 7.5  # pixels of a scatter, of a panel on a phone, of a letter


def lines(
    frame: pd.DataFrame,
    words: Words,
    x_axis: Axis,
    axis: Axis,
    *,
    own_scales: bool = False,
    reference: Reference | None = None,
    keyed: bool = False,
) -> Figure:
    """A sweep: `value` over `x`, one line per `series` and kind, bands where intervals are.

    `frame` has `x`, `value`, `kind` (one of `MARKS`), optionally `series`, `low` and `high`; with
    `own_scales` panels have vertical axes of their own. The `reference` is a level line in each
    panel. A series' name stands at the end of its line, or if `keyed` in a legend, for lines that
    leave no room for names. Of several series each has a colour, and shape and dash alone tell the
    kind; of one colour tells the kind, as everywhere.
    """
    frame = encodings.closed(frame)
    rows = encodings.tidy(frame, ["x", "value", "kind"])
    rows["series"] = rows.get("series", "")
    if own_scales:
        rows = encodings.with_extents(rows)
    kinds = encodings.present(rows)
    several = rows["series"].nunique() > 1
    keyed = keyed and several
    rows = _with_names(rows, axis, x_axis, none=keyed)
    rows = encodings.coloured(rows) if several else rows.assign(hue=rows["kind"].map(_COLOURS))
    height, rows["lift"] = _heights(rows, own_scales, axis, x_axis, words.caption)
    x = _horizontal(rows, x_axis)
    scale = encodings.scale(axis.log, axis.zero)
    title = _upright(axis.title, height) if "panel" in rows else axis.title
    y = alt.Y("value:Q", title=title or None, scale=scale, axis=alt.Axis(tickCount=6))
    base = alt.Chart().encode(x=x, detail=["series:N", "provenance:N"])
    marks = encodings.by_series(kinds) if several else encodings.provenance(kinds)
    paths = base.mark_line(strokeWidth=1.6).encode(
        y=y, stroke=marks["stroke"], strokeDash=marks["strokeDash"]
    )
    fields = {"series": "", "provenance": "", "x": x_axis.quantity, "value": axis.heading}
    tooltip = encodings.tooltip(rows, fields | {"low": "from", "high": "to"})
    points = base.mark_point(size=alt.ExprRef(_SIZE), strokeWidth=1.8, opacity=1).encode(
        y=y, tooltip=tooltip, **marks
    )
    behind, names = _names(base, y) if (named := rows["named"].any()) else ([], [])
    below = [*_bands(base, rows, title, scale), *encodings.level(reference, y)]
    keys = [encodings.key(kinds)] if several else []
    keys += [encodings.series_key(rows)] if keyed else []
    layers = [*below, paths, *behind, points, *keys, *names]
    series = {"series": "series"} if named or keyed else {}
    headings = series | {"provenance": "provenance", "x": x_axis.title}
    panels = encodings.panels(alt.layer(*layers), rows, height, _SIDE_BY_SIDE)
    if own_scales:
        panels = panels.resolve_scale(y="independent")
    columns = encodings.columns(rows, headings, axis)
    return figure_of(panels, words, columns, _line_points(frame, x_axis.unit))


def _with_names(rows: pd.DataFrame, axis: Axis, x_axis: Axis, none: bool) -> pd.DataFrame:
    """The rows with what name stands beside which, and whether it goes on from there."""
    rows["named"] = rows.index.isin([] if none else _line_ends(rows))
    rows["ending"] = _endings(rows, axis)
    rows["named"] &= rows["ending"] != ""
    across = _places(rows["x"], x_axis) * _NARROW
    wide = _LETTER * rows["ending"].str.len()
    # else it would begin left of the panel
    rows["onward"] = rows["named"] & (across < wide) & (across + wide <= _NARROW)
    return rows


def _horizontal(rows: pd.DataFrame, axis: Axis) -> alt.X:
    """The axis below, with ticks at the points if those are few, and each with its name."""
    at = sorted(rows["x"].unique())
    ticks = {"values": at} if len(at) <= 10 else {"tickCount": 6}
    if axis.even:
        every = alt.Axis(grid=False, labelAngle=0, labelOverlap=False)
        return alt.X(
            "x:O", title=axis.title, scale=alt.Scale(type="point", padding=0.3), axis=every
        )
    if len(at) <= 10 and not axis.log and any(x % 1 for x in at):
        # else numbers are rounded as the step between ticks would be, 0.25 to 0 and 120 to 1.2e+2
        ticks["format"] = ",.6~r"
    if axis.years:
        ticks["format"] = "d"
    if axis.log:
        ticks["labelFlush"] = encodings.LOG_FLUSH
    ruler = alt.Axis(grid=False, **ticks)
    return alt.X("x:Q", title=axis.title, scale=encodings.scale(axis.log), axis=ruler)


def _upright(measure: str, height: float) -> str | list[str]:
    """An upright title in lines no longer than its panel is high, which would grow with it."""
    lines = textwrap.wrap(measure, max(12, int(height / _UPRIGHT)), break_long_words=False)
    return lines if len(lines) > 1 else measure


def _bands(
    base: alt.Chart, rows: pd.DataFrame, title: str | list[str], scale: alt.Scale
) -> list[alt.Chart]:
    """An area between the ends of the intervals, where there are any."""
    if not {"low", "high"} <= set(rows.columns) or rows["low"].isna().all():
        return []
    low = alt.Y("low:Q", title=title or None, scale=scale)
    colour = alt.Color("hue:N", scale=None)  # "no legend" would take that of the series away
    area = base.transform_filter("isValid(datum.low)").mark_area(fillOpacity=0.16)
    return [area.encode(y=low, y2="high:Q", color=colour)]


def _beside() -> dict[str, Any]:
    """Where a name stands beside its point: where `_lifts` takes it to be."""
    return {
        "align": alt.ExprRef("datum.onward ? 'left' : 'right'"),
        "baseline": "bottom",
        "dx": alt.ExprRef("datum.onward ? -4 : 4"),
        "dy": alt.ExprRef(f"{-_ABOVE} - (datum.lift || 0)"),
    }


def _names(base: alt.Chart, y: alt.Y) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """The series' names, each beside the end of its line: their halos, and they themselves."""
    named = base.transform_filter("datum.named").encode(y=y, text="ending:N")
    colour = alt.Color("hue:N", scale=None, legend=None)
    text = {"fontWeight": "bold", **_beside()}
    return [named.mark_text(**_HALO, **text)], [named.mark_text(**text).encode(color=colour)]


def scatter(frame: pd.DataFrame, words: Words, x_axis: Axis, axis: Axis, most: int = 6) -> Figure:
    """One number over another, both logarithmic, beside the line on which they are equal.

    `frame` has `label`, `x`, `value` (both positive) and `kind` (one of `MARKS`). Of the
    `most` that lie farthest from the line the names are written, as far as a colon; the tooltip and
    the table have all.
    """
    frame = encodings.closed(frame)
    rows = encodings.tidy(frame, ["label", "x", "value", "kind"])
    kinds = encodings.present(rows)
    far = (rows["value"] / rows["x"]).map(math.log).abs().nlargest(most).index
    short = rows["label"].str.partition(":")[0]  # a whole name would lie over other points
    rows["ending"] = short.where(rows.index.isin(far), "")
    rows["named"] = rows["ending"] != ""
    both = Axis("", log=True)
    rows["onward"] = _places(rows["x"], both) <= 0.4  # where there is room
    # each point by itself is something that a name must not cover
    alone = rows.assign(series=rows["label"])
    rows["lift"] = _lifts(alone, _ups(alone, False, both, _SQUARE), both)
    scale = encodings.scale(log=True)
    x = alt.X("x:Q", title=x_axis.title, scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("value:Q", title=axis.title, scale=scale, axis=alt.Axis(tickCount=6))
    low = max(rows["x"].min(), rows["value"].min())
    high = min(rows["x"].max(), rows["value"].max())
    ends = alt.Data(values=[{"x": low, "value": low}, {"x": high, "value": high}])
    line = alt.Chart(ends).mark_line(color=GREY, strokeDash=[5, 3], strokeWidth=1.3)
    fields = {"label": "", "provenance": "", "x": x_axis.heading, "value": axis.heading}
    base = alt.Chart().encode(x=x, y=y)
    points = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        tooltip=encodings.tooltip(rows, fields), **encodings.provenance(kinds)
    )
    named = base.transform_filter("datum.named").encode(text="ending:N")
    halos, names = (named.mark_text(fontSize=11, **look, **_beside()) for look in (_HALO, {}))
    layers = alt.layer(line.encode(x=x, y=y), halos, points, names)
    chart = encodings.panels(layers, rows, _SQUARE)
    columns = encodings.columns(rows, {"label": "case", "x": x_axis.title}, axis)
    spoken = frame.assign(label=frame["label"].astype(str) + " at " + frame["x"].map("{:g}".format))
    return figure_of(chart, words, columns, narrate.described(spoken))


def _line_points(frame: pd.DataFrame, unit: str) -> str:
    """The lines in words, of long ones some points: nobody listens to hundreds of numbers."""
    line = [name for name in ("panel", "kind", "series") if name in frame]
    frame = frame.reset_index(drop=True)
    some = pd.concat([_some(rows) for _, rows in frame.groupby(line, sort=False, dropna=False)])
    left_out = f" Of longer lines {_SPOKEN} points are told." if len(some) < len(frame) else ""
    frame = some.sort_index()
    places = frame["x"].map("{:g}".format) + (f" {unit}" if unit else "")
    if "series" in frame:
        places = (frame["series"].astype(str) + " at " + places).str.removeprefix(" at ")
    return str(narrate.described(frame.assign(label=places))) + left_out


def _some(line: pd.DataFrame) -> pd.DataFrame:
    """Both ends of a line and what lies evenly between them."""
    return line.iloc[np.linspace(0, len(line) - 1, min(len(line), _SPOKEN)).round().astype(int)]


def _line_ends(rows: pd.DataFrame) -> pd.Index:
    """The rows beside which the names of series are written, where they have one."""
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
    named = order[order["series"].astype(str) != ""]
    return named.groupby([*encodings.by_panel(rows), "series"]).tail(1).index


def _endings(rows: pd.DataFrame, axis: Axis) -> pd.Series:
    """What stands at a line's end: its name, or of lines that end in one point all their names."""
    endings = rows["series"].astype(str).where(rows["named"], "")
    places, near = _places(rows["value"], axis), 0.002
    ends = rows[rows["named"]]
    for _, group in ends.groupby(["x", *encodings.by_panel(rows)], sort=False):
        left = list(group.index)
        while left:
            first, *others = left
            same = [n for n in others if abs(places[n] - places[first]) <= near]
            merged = [first, *same]
            endings[merged] = ""  # the last one is drawn over the others
            endings[merged[-1]] = ", ".join(str(rows.at[n, "series"]) for n in merged)
            left = [n for n in others if n not in same]
    return endings


def _heights(
    rows: pd.DataFrame, own_scales: bool, axis: Axis, x_axis: Axis, caption: str
) -> tuple[float, pd.Series]:
    """A panel's height in pixels, and the lifts of the names, which may stand out above it."""
    room = partial(
        encodings.fitting, rows, _LINES_HEIGHT, _LEAST_HEIGHT, caption, beside=_SIDE_BY_SIDE
    )
    height = room()
    ups = _ups(rows, own_scales, axis, height)
    lifts = _lifts(rows, ups, x_axis)
    tops = ups + lifts + _NAME_HEIGHT
    out = tops[rows["named"]].max() - height  # missing where nothing is named
    if out > 0:
        height = room(out)
        lifts = _lifts(rows, _ups(rows, own_scales, axis, height), x_axis)
    return height, lifts


def _ups(rows: pd.DataFrame, own_scales: bool, axis: Axis, high: float) -> pd.Series:
    """Pixels by which each point lies above the lowest one that shares its scale.

    `high` is a panel's height in pixels.
    """
    ends = [end for end in ("value", "low", "high") if end in rows]  # bands are drawn as well
    drawn = pd.DataFrame({end: _linear(rows[end], axis) for end in ends})
    ups = pd.Series(0.0, index=rows.index)
    high -= 2 * encodings.LOG_PADDING if axis.log else 0
    for panel in encodings.each_panel(rows):
        seen = drawn.loc[panel.index] if own_scales else drawn
        least, most = _extent(seen.stack(), axis)
        ups[panel.index] = (drawn.loc[panel.index, "value"] - least) * high / ((most - least) or 1)
    return ups


def _lifts(rows: pd.DataFrame, ups: pd.Series, x_axis: Axis) -> pd.Series:
    """Pixels by which each line's name moves up, so that it covers no other's and no line.

    `ups` are the places of the points; how wide a panel will be is taken for the narrowest.
    """
    lifts = pd.Series(0.0, index=rows.index)
    across = _places(rows["x"], x_axis) * _NARROW
    for panel in encodings.each_panel(rows):
        up = ups[panel.index]
        drawn = pd.DataFrame({"across": across[panel.index], "up": up}).sort_values("across")
        lines = list(drawn.groupby([panel["series"], panel["kind"]]))
        placed: list[tuple[float, float, float]] = []  # left, right and lower edge of a name
        for end in up[panel["named"]].sort_values().index:
            wide = _LETTER * len(str(rows.at[end, "ending"]))
            left = across[end] - (0 if rows.at[end, "onward"] else wide)
            right = left + wide
            passing = [
                (*span, series == rows.at[end, "series"])
                for (series, _), line in lines
                if (span := _passes(line, left, right))
            ]
            beside = [low for first, last, low in placed if left < last and first < right]
            low = _room(up[end], beside, passing)
            placed.append((left, right, low))
            lifts[end] = low - up[end]
    return lifts


def _room(up: float, names: list[float], passing: list[tuple[float, float, bool]]) -> float:
    """The nearest place of a name above or below the end of its line, off other names and lines.

    `names` are the lower edges of the names beside it, `passing` between which heights each line
    runs there and whether it is its own. A name moves far only where no other line lies between.
    Off the other names alone, above, where there is no such place.
    """

    def apart(low: float) -> bool:
        return not any(abs(low - other) < _NAME_HEIGHT for other in names)

    rises = [up + step for step in range(_NAME_HEIGHT * 2 * len(names) + 3 * _REACH)]
    rises = list(filter(apart, rises))
    falls = [up - _NAME_HEIGHT - _ABOVE - 4 - step for step in range(_REACH)]
    falls = [low for low in falls if apart(low) and low + _ABOVE >= 0]

    def far(low: float) -> bool:
        return low > rises[0] + _REACH

    def free(low: float) -> bool:
        bottom, top = low + _ABOVE - 5, low + _ABOVE + _NAME_HEIGHT - 2  # with half a point
        return not any(
            least < top and most > (up if far(low) and not own else bottom)
            for least, most, own in passing
        )

    return next(filter(free, sorted(rises + falls, key=far)), rises[0])


def _passes(line: pd.DataFrame, left: float, right: float) -> tuple[float, float] | None:
    """Between which heights a line runs from left to right; None where it isn't there."""
    at, up = line["across"].to_numpy(), line["up"].to_numpy()
    left, right = max(left, at[0]), min(right, at[-1])
    if left > right:
        return None
    within = [*up[(at >= left) & (at <= right)], *np.interp([left, right], at, up)]
    return min(within), max(within)


def _places(values: pd.Series, axis: Axis) -> pd.Series:
    """Where values lie on an axis, in a linear measure; from 0 to 1."""
    places = _linear(values, axis)
    least, most = _extent(places, axis)
    return (places - least) / ((most - least) or 1)


def _linear(values: pd.Series, axis: Axis) -> pd.Series:
    return values.where(values > 0).map(math.log) if axis.log else values


def _extent(places: pd.Series, axis: Axis) -> tuple[float, float]:
    least, most = places.min(), places.max()
    return (min(least, 0), max(most, 0)) if axis.zero and not axis.log else (least, most)
