"""What the charts share: rows, axes, legends, panels, and the marks of provenance."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from pgrerun.page.charts.figure import CATEGORIES, GREY, MARKS, Axis, Mark, Reference

_LABEL_WIDTH = 22  # characters; keeps the plot readable on a phone
_MANY, _ONE_LINE = 12, 200  # rows from which on a label has one line, of so many characters
NAME_LINE = 12  # pixels of a line of a row's name
LOG_PADDING = 12  # pixels at the ends of a logarithmic axis
LOG_FLUSH = LOG_PADDING + 1  # from where a name there would be cut, or reach into the next panel
TALLEST = 700  # pixels of a whole chart with its words: what a reader sees at once
# of which title, legend, axis and buttons take, each panel's heading, and a line of the caption
_AROUND, _HEADING, _LINE = 202, 46, 22
_AXIS = 38  # of a horizontal axis with its title, which the last row's are in _AROUND
_LINE_LENGTH = 100  # characters of a caption's line on a wide page
X_TITLE = 16  # pixels of a title below each panel that has a horizontal axis of its own
SIDE_BY_SIDE = 4  # panels from which on two stand beside each other

# how a field is called where a reader sees it
_SPOKEN = {"label": "case", "series": "case", "provenance": "origin"}


def by_panel(rows: pd.DataFrame) -> list[str]:
    """The column that tells panels apart, if a chart has panels."""
    return ["panel"] if "panel" in rows else []


def each_panel(rows: pd.DataFrame) -> list[pd.DataFrame]:
    return [panel for _, panel in rows.groupby("panel")] if "panel" in rows else [rows]


def closed(frame: pd.DataFrame) -> pd.DataFrame:
    """A chart's frame without the ends of open intervals.

    An interval that one pair alone leaves open, from 0 to infinity, can't be drawn; where no row
    has both ends, their columns go.
    """
    if not {"low", "high"} <= set(frame.columns):
        return frame
    ends = frame[["low", "high"]].astype(float).replace([math.inf, -math.inf], math.nan)
    open_ = ends.isna().any(axis=1)
    return frame.drop(columns=list(ends)) if open_.all() else frame.assign(**ends.mask(open_))


def require(frame: pd.DataFrame, needed: Sequence[str]) -> None:
    """ValueError unless a chart's frame has these columns, and rows."""
    if missing := [column for column in needed if column not in frame]:
        raise ValueError(
            f"the frame of a chart lacks {', '.join(missing)}; it has"
            f" {', '.join(map(str, frame.columns))}"
        )
    if frame.empty:
        raise ValueError("the frame of a chart is empty")


def tidy(frame: pd.DataFrame, needed: Sequence[str]) -> pd.DataFrame:
    require(frame, needed)
    rows = frame.copy()
    unknown = set(rows["kind"]) - set(MARKS)
    if unknown:
        raise ValueError(
            f"unknown kind of number: {', '.join(map(str, unknown))}; known: {', '.join(MARKS)}"
        )
    rows["provenance"] = rows["kind"].map(lambda kind: MARKS[kind].title)
    if "label" in rows:
        rows["label"] = rows["label"].astype(str)
        width = _ONE_LINE if rows["label"].nunique() > _MANY else _LABEL_WIDTH
        rows["lines"] = rows["label"].map(lambda label: textwrap.fill(label, width))
    return rows


def with_extents(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows for panels with scales of their own: what has no interval in a panel ends in its value.

    Marks without a point in a panel would leave that panel's scale without an extent.
    """
    if not {"panel", "low", "high"} <= set(rows.columns):
        return rows
    bare = ~rows["low"].notna().groupby(rows["panel"]).transform("any")
    return rows.assign(**rows[["low", "high"]].mask(bare, rows["value"], axis=0))


def present(rows: pd.DataFrame) -> list[str]:
    return [mark.title for kind, mark in MARKS.items() if (rows["kind"] == kind).any()]


def _by_title(titles: Sequence[str]) -> list[Mark]:
    return [next(mark for mark in MARKS.values() if mark.title == title) for title in titles]


def shape_of(kind: str) -> str:
    """The shape of a kind's marks, by its title."""
    return _by_title([kind])[0].shape


def legend(orient: str, columns: int) -> alt.Legend:
    return alt.Legend(
        orient=orient,
        direction="horizontal",
        title=None,
        symbolSize=85,
        symbolStrokeWidth=1.8,
        symbolOpacity=1,
        labelLimit=290,
        columns=columns,
        columnPadding=14,
        offset=24 if orient == "top" else 18,  # the page's script fits the columns to its width
    )


def dash(kinds: list[str], named: bool = True) -> alt.StrokeDash:
    scale = alt.Scale(domain=kinds, range=[list(mark.dash) for mark in _by_title(kinds)])
    shown = legend("top", 4) if named else None
    return alt.StrokeDash("provenance:N", title=None, scale=scale, legend=shown)


def provenance(kinds: list[str], grey: bool = False) -> dict[str, Any]:
    """The encodings that make a point's provenance: outline, fill, shape and dash.

    In `grey` where colour tells something else.
    """
    marks = _by_title(kinds)
    colours = [GREY if grey else mark.colour for mark in marks]
    fills = [colour if mark.fill else "transparent" for mark, colour in zip(marks, colours)]
    shown = legend("top", 4)

    def scale(values: list[Any]) -> alt.Scale:
        return alt.Scale(domain=kinds, range=values)

    return {
        "stroke": alt.Stroke("provenance:N", title=None, scale=scale(colours), legend=shown),
        "fill": alt.Fill("provenance:N", title=None, scale=scale(fills), legend=shown),
        "shape": alt.Shape(
            "provenance:N",
            title=None,
            legend=shown,
            scale=scale([mark.shape for mark in marks]),
        ),
        "strokeDash": dash(kinds),
    }


def coloured(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the colour of each one's series, `hue`.

    A published run stays grey beside the one that made the page.
    """
    names = list(dict.fromkeys(rows["series"]))
    hues = {name: CATEGORIES[n % len(CATEGORIES)] for n, name in enumerate(names)}
    behind = rows["kind"].isin(["published", "published-slowed"])
    return rows.assign(hue=rows["series"].map(hues).mask(behind, GREY))


_HOLLOW = alt.FieldOneOfPredicate(
    field="kind", oneOf=[kind for kind, mark in MARKS.items() if not mark.fill]
)


def by_series(kinds: list[str]) -> dict[str, Any]:
    """The encodings of a point in its series' colour, whose shape tells its provenance.

    They have no legend: see `key`.
    """
    marks = provenance(kinds)
    for channel in ("shape", "strokeDash"):  # "no legend" would take the key's away
        marks[channel].legend = alt.Undefined
    return marks | {
        "stroke": alt.Stroke("hue:N", scale=None),
        "fill": alt.condition(_HOLLOW, alt.value("transparent"), alt.Fill("hue:N", scale=None)),
    }


def key(kinds: list[str]) -> alt.Chart:
    """What the shapes mean, as a legend in grey of points that nobody sees."""
    return alt.Chart().mark_point(opacity=0).encode(**provenance(kinds, grey=True))


def series_key(rows: pd.DataFrame) -> alt.Chart:
    """What the colours of `coloured` mean, as a legend of points that nobody sees."""
    named = rows.drop_duplicates("series").set_index("series")["hue"]
    # a published run's points are grey where another's have the colour
    named.update(rows[rows["hue"] != GREY].drop_duplicates("series").set_index("series")["hue"])
    scale = alt.Scale(domain=list(named.index), range=list(named))
    shown = legend("top", 2)
    shown["symbolType"] = "stroke"
    colour = alt.Color("series:N", title=None, scale=scale, legend=shown)
    return alt.Chart().mark_point(opacity=0).encode(color=colour)


def across(panels: int, beside: int) -> int:
    """How many panels stand next to each other; on a phone the page's script makes it one."""
    return 2 if panels >= beside else 1


def fitting(
    rows: pd.DataFrame,
    wished: float,
    least: float,
    caption: str,
    more: float = 0,
    beside: int = SIDE_BY_SIDE,
) -> float:
    """The height of a panel: as wished, or what keeps the chart from being too tall.

    In pixels; `more` is what a panel takes beside its heading, `beside` as `panels` takes it.
    """
    words = _LINE * math.ceil(len(caption) / _LINE_LENGTH)
    many = len(each_panel(rows))
    columns = across(many, beside)
    lines = math.ceil(many / columns)
    axes = _AXIS * (lines - 1) if many % columns else 0
    each = (TALLEST - _AROUND - words - axes) / lines
    room = each - (_HEADING if many > 1 else 0) - more
    return max(min(wished, room), least)


def rows_axis(rows: pd.DataFrame, grid: bool = True) -> alt.Y:
    small = {"labelFontSize": 11} if rows["lines"].nunique() > _MANY else {}
    axis = alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        labelLimit=240,
        ticks=False,
        domain=False,
        grid=grid,
        labelPadding=10,
        **small,
    )
    return alt.Y("lines:N", sort=list(dict.fromkeys(rows["lines"])), title=None, axis=axis)


def scale(log: bool = False, zero: bool = False) -> alt.Scale:
    return (
        alt.Scale(type="log", nice=False, padding=LOG_PADDING)
        if log
        else alt.Scale(zero=zero, nice=True)
    )


def x_axis(field: str, axis: Axis, **extent: Any) -> alt.X:
    """The horizontal axis, whose scale may have an `extent` of its own."""
    flush = {"labelFlush": LOG_FLUSH} if axis.log else {}
    ruler = alt.Axis(tickCount=5, **flush)
    shown = alt.Scale(**extent) if extent else scale(axis.log, axis.zero)
    return alt.X(f"{field}:Q", title=axis.title or None, scale=shown, axis=ruler)


def tooltip(rows: pd.DataFrame, titles: Mapping[str, str]) -> list[alt.Tooltip]:
    def one(field: str, title: str) -> alt.Tooltip:
        numeric = pd.api.types.is_numeric_dtype(rows[field])
        return alt.Tooltip(
            f"{field}:{'Q' if numeric else 'N'}",
            title=title or _SPOKEN.get(field, field),
            **({"format": ".4~g"} if numeric else {}),
        )

    return [one(field, title) for field, title in titles.items() if field in rows]


def level(reference: Reference | None, y: alt.Y) -> list[alt.Chart]:
    """The rule from side to side, on the vertical axis `y`, its label at the left end."""
    if reference is None:
        return []
    one = alt.Data(values=[{"value": reference.value}])
    base = alt.Chart(one).encode(y=y)
    rule = base.mark_rule(color=GREY, strokeDash=[5, 3], strokeWidth=1.3)
    place = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "fontSize": 11}
    words = base.encode(x=alt.value(0), text=alt.value(reference.label))
    halo, text = (words.mark_text(**look, **place) for look in ({"style": "halo"}, {}))
    return [rule, halo, text] if reference.label else [rule]


def rule(reference: Reference) -> list[alt.Chart]:
    one = alt.Data(values=[{}])  # one rule, not one per row of the chart's data
    base = alt.Chart(one).encode(x=alt.datum(reference.value))
    rule = base.mark_rule(color=GREY, strokeDash=[5, 3], strokeWidth=1.3)
    words = base.encode(y=alt.value(0), text=alt.value(reference.label))
    text = words.mark_text(align="center", baseline="bottom", dy=-4, fontSize=11)
    return [rule, text] if reference.label else [rule]


def panels(
    layers: alt.LayerChart,
    rows: pd.DataFrame,
    height: float,
    beside: int = SIDE_BY_SIDE,
) -> alt.TopLevelMixin:
    """The chart, or a panel of `height` pixels for each `panel`, from `beside` on in pairs."""
    if "panel" not in rows:
        fit = alt.AutoSizeParams(
            type="fit-x", contains="padding"
        )  # the legend takes no height from the plot
        return layers.properties(data=rows, width="container", height=height, autosize=fit)
    # Vega-Lite can't fit panels to a container; the page's script sets the panel's width.
    header = alt.Header(
        title=None, labelOrient="top", labelAnchor="start", labelFontWeight="bold", labelPadding=4
    )
    names = list(dict.fromkeys(rows["panel"]))
    if (columns := across(len(names), beside)) > 1:
        panel = alt.Facet("panel:N", sort=names, header=header)
        sized = layers.properties(width=300, height=height)
        chart = sized.facet(facet=panel, columns=columns, data=rows)
        # Shared axes stand below the last row, one of them below a place that no panel takes.
        return chart.resolve_axis(x="independent") if len(names) % columns else chart
    row = alt.Row("panel:N", sort=names, header=header)
    return layers.properties(width=480, height=height).facet(row=row, data=rows)


def columns(rows: pd.DataFrame, words: Mapping[str, str], axis: Axis) -> dict[str, str]:
    known = {"panel": "panel", **words, "value": axis.title or "amount", "low": "from"}
    return {field: title for field, title in (known | {"high": "to"}).items() if field in rows}
