"""The recurring charts, and how a chart travels from a notebook into a page.

Every chart verb takes a tidy frame and returns a `Figure`: an Altair chart with
the question it answers, a caption, a text description and the columns of its
table. A `Figure` draws itself without a network in Jupyter Lab, papermill and the
book: its HTML holds a picture (for whoever has no JavaScript) and the Vega-Lite
specification, which `book/_ext/charts.js` replaces by the live chart, adding the
table and the data download. Statistics are not made here: values and intervals
come in with the frame (see `statistics.py`).

Provenance has one mark everywhere, told apart by shape, fill and dash as well as
colour, so that it survives grey print and colour-blind eyes:

| kind        | mark                                       | meaning                        |
|-------------|--------------------------------------------|--------------------------------|
| `printed`   | hollow diamond                             | a number printed in a document |
| `published` | grey dot                                   | the run published with the book|
| `measured`  | filled dot, its interval as a rule         | the run that made this page    |
| `simulated` | hollow dashed square                       | a model's number               |
"""

import base64
import html
import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from .errors import BookError
from .statistics import Interval

VEGALITE_MIME = "application/vnd.vegalite.v6+json"
#: the Vega-Lite that Altair writes, in the form that vl-convert asks for
VEGALITE_VERSION = ".".join(alt.VEGALITE_VERSION.split(".")[:2])


@dataclass(frozen=True)
class Mark:
    """How one kind of number is drawn; `title` is its name in every legend."""

    title: str
    colour: str
    shape: str
    fill: bool
    dash: tuple[float, float] = (1, 0)


# Each colour keeps a contrast of at least 3:1 with a white and with a near-black page
# (a test computes it), so that the same specification serves both themes.
MARKS: Mapping[str, Mark] = {
    "printed": Mark("printed", "#D55E00", "diamond", fill=False),
    "published": Mark("published run", "#7F858D", "circle", fill=True),
    "measured": Mark("this run", "#2F7CC0", "circle", fill=True),
    "simulated": Mark("simulated", "#A0609F", "square", fill=False, dash=(2.5, 1.8)),
}
#: neighbours in a stack differ in hue and in lightness
CATEGORIES = (
    "#2F7CC0", "#D55E00", "#128A68", "#B5579B", "#8C6D31",
    "#7277D5", "#C44E52", "#4A8A94", "#8A8410", "#7F858D",
)  # fmt: skip
_REFERENCE = "#7F858D"
_PICTURE_WIDTH = 640
_LEAST_PANEL = 120
_LEGEND_COLUMN = 160
_LABEL_WIDTH = 22  # characters; keeps the plot readable on a phone


@dataclass(frozen=True)
class Figure:
    """A chart with its words and its data; the last value of a notebook cell.

    `columns` maps a field of the chart's data to its heading in the page's table
    and in the downloaded CSV, in order. `name` names the download and the anchor.
    """

    chart: alt.TopLevelMixin
    question: str
    caption: str
    description: str
    columns: Mapping[str, str]
    name: str = ""

    def __post_init__(self):
        for word in ("question", "caption", "description"):
            if not getattr(self, word).strip():
                raise BookError(f"A chart has no {word}: give every chart a question, a caption and a description.")

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, its data and words inside."""
        meta = {
            "name": self.name or slug(self.question),
            "question": self.question,
            "caption": self.caption,
            "columns": [{"field": field, "title": title} for field, title in self.columns.items()],
        }
        chart = self.chart.properties(description=self.description, usermeta=meta)
        # Altair's default theme goes; the picture's theme and the page's come later
        return {key: value for key, value in chart.to_dict().items() if key != "config"}

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        return mimebundle(self.spec(), png="image/png" in (include or ()))


def slug(words: str) -> str:
    """`words` as a file name and an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60].strip("-")


def enable() -> None:
    """Make plain Altair charts draw offline too (an exercise's own chart, say).

    Registers and selects the Altair renderer `pgrerun`. Altair's own default loads
    Vega from a public server, and its `jupyterlab` renderer emits a MIME type that
    papermill's notebook validation refuses.
    """
    alt.renderers.register("pgrerun", lambda spec, **_: mimebundle(spec))
    alt.renderers.enable("pgrerun")


def mimebundle(spec: dict[str, Any], *, png: bool = False) -> dict[str, Any]:
    """One chart's outputs: specification, HTML with a picture inside, and plain text.

    With `png` also the picture by itself, for an exporter that reads no HTML: no page
    and no notebook shows it, and it takes longest to draw.
    BookError if the specification has no `description`: a chart that can't be
    read aloud is not published.
    """
    description = spec.get("description", "").strip()
    if not description:
        raise BookError(
            "A chart has no text description: add .properties(description=...) that says in words what it shows."
        )
    meta = spec.get("usermeta", {})
    question, caption = meta.get("question", ""), meta.get("caption", "")
    titled = spec | ({"title": _title(question)} if question else {})
    bundle = {
        VEGALITE_MIME: titled,
        "text/html": _html(spec, meta, description),
        "text/plain": "\n".join(filter(None, [question, caption, f"[chart: {description}]"])),
    }
    if png:
        picture = vl_convert.vegalite_to_png(_picture(titled), vl_version=VEGALITE_VERSION, scale=1.5)
        bundle["image/png"] = base64.b64encode(picture).decode()
    return bundle


def untitled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification that `mimebundle` was given, from the one that it put out."""
    return {key: value for key, value in spec.items() if key != "title" or not spec.get("usermeta", {}).get("question")}


def svg(figure: Figure, width: int = _PICTURE_WIDTH, dark: bool = False) -> str:
    """The figure as SVG for a place of its own, outside of a notebook: `width` in pixels, about; for a light or a dark page."""
    config = _DARK if dark else _LIGHT
    spec = _with_legends({"background": "transparent", "config": config} | figure.spec(), columns=max(1, width // _LEGEND_COLUMN))
    if spec.get("width") == "container":
        spec["width"] = width
    picture = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE_VERSION)
    if "spec" in spec:  # panels, beside whose own width the axis takes what it takes
        beside = float(re.search(r'width="([0-9.]+)"', picture)[1]) - spec["spec"]["width"]
        spec["spec"] = spec["spec"] | {"width": max(_LEAST_PANEL, width - beside)}
        picture = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE_VERSION)
    return picture


def _with_legends(spec: Any, columns: int) -> Any:
    """The specification, with no legend wider than so many columns."""
    if isinstance(spec, list):
        return [_with_legends(part, columns) for part in spec]
    if not isinstance(spec, dict):
        return spec
    found = {name: part if name == "datasets" else _with_legends(part, columns) for name, part in spec.items()}
    if isinstance(legend := found.get("legend"), dict) and "columns" in legend:
        found["legend"] = legend | {"columns": min(legend["columns"], columns)}
    return found


def _title(question: str) -> dict[str, Any]:
    return {"text": textwrap.wrap(question, 72), "anchor": "start"}


def _html(spec: dict[str, Any], meta: Mapping[str, Any], description: str) -> str:
    # The picture is the chart for readers without our script: Jupyter Lab, a printed
    # notebook, an e-book. As an <img> its clip paths can't collide with another's.
    svg = vl_convert.vegalite_to_svg(_picture(spec), vl_version=VEGALITE_VERSION)
    source = base64.b64encode(_lean(svg).encode()).decode()
    # "</script>" or "<!--" in a label must not end the element
    data = json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    name, question, caption = (html.escape(meta.get(key, "")) for key in ("name", "question", "caption"))
    anchor = f' id="chart-{name}"' if name else ""
    lines = [
        f'<figure class="vl-figure"{anchor}>',
        f'<p class="vl-question">{question}</p>' if question else "",
        f'<div class="vl-chart"><img alt="{html.escape(description)}" src="data:image/svg+xml;base64,{source}"></div>',
        f'<script type="application/json" class="vl-spec">{data}</script>',
        f"<figcaption>{caption}</figcaption>" if caption else "",
        "</figure>",
    ]
    return "\n".join(filter(None, lines))


# Nobody is read what stands inside an <img>, and a hundredth of a pixel is not seen: half of a page's weight was these.
_UNHEARD = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')
_PLACES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"\d+\.\d{3,}")


def _lean(svg: str) -> str:
    """The picture with nothing in it that an <img> doesn't show."""

    def rounded(attribute: re.Match) -> str:
        return _LONG.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), attribute[0])

    return _PLACES.sub(rounded, _UNHEARD.sub("", svg))


def _picture(spec: dict[str, Any]) -> dict[str, Any]:
    """`spec` with a fixed width and the light theme, for rendering without a page."""
    fixed = {"background": "white", "config": _LIGHT} | spec
    return fixed | ({"width": _PICTURE_WIDTH} if spec.get("width") == "container" else {})


# The page's script sets the same options from the theme's colours.
_LIGHT: dict[str, Any] = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "#3d434a", "titleColor": "#3d434a", "gridColor": "#e3e6ea", "tickColor": "#b4bac2",
        "domainColor": "#b4bac2", "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
    },
    "legend": {"labelColor": "#3d434a", "titleColor": "#3d434a", "labelFontSize": 12},
    "header": {"labelColor": "#3d434a", "labelFontSize": 12},
    "title": {"color": "#1c2024", "fontSize": 14},
    "text": {"fill": "#3d434a", "fontSize": 12},
    "bar": {"stroke": "#ffffff", "strokeWidth": 1},
}  # fmt: skip
_INVERTED = {"#3d434a": "#c9ced6", "#e3e6ea": "#343a42", "#b4bac2": "#59616b", "#1c2024": "#e8eaed", "#ffffff": "#16191d"}
_DARK: dict[str, Any] = {
    part: {name: _INVERTED.get(value, value) for name, value in options.items()} if isinstance(options, dict) else options
    for part, options in _LIGHT.items()
}


# --- the charts -------------------------------------------------------------------


def row(label: str, kind: str, value: Interval | float, **more: Any) -> dict[str, Any]:
    """One row of a chart's frame: an interval becomes value, low and high; `more` are further columns."""
    if isinstance(value, Interval):
        more |= {"low": value.low, "high": value.high}
        value = value.estimate
    return {"label": label, "kind": kind, "value": value, **more}


def compare_to_print(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    quantity: str,
    unit: str,
    reference: float | None = None,
    reference_label: str = "",
    facet: str | None = None,
    own_scales: bool = False,
    log: bool = False,
    zero: bool = False,
    name: str = "",
) -> Figure:
    """Numbers of different provenance for the same things, one row per thing.

    `frame` has `label` (the rung or case), `kind` (one of `MARKS`), `value`, and
    where there is an interval `low` and `high`; rows are drawn in the order in
    which labels first occur. `facet` names a column that splits the chart into
    stacked panels, with `own_scales` each with an axis of its own (panels of
    different units; their names then say the unit). `reference` draws a labelled vertical rule (1 for a ratio).
    `quantity` and `unit` ("" for a ratio) make the axis title. ValueError if a
    column is missing or a kind unknown.
    """
    rows = _tidy(frame, ["label", "kind", "value"] + ([facet] if facet else []))
    kinds = _present(rows)
    y = _rows_axis(rows)
    offset = alt.YOffset("provenance:N", sort=kinds)
    scale = _scale(log, zero)
    tooltip = _tooltip(rows, {"label": "", "provenance": "", "value": quantity, "low": "from", "high": "to"})
    base = alt.Chart().encode(y=y, yOffset=offset)
    layers = [
        base.mark_point(size=85, strokeWidth=1.9, opacity=1).encode(
            x=_x("value", quantity, unit, scale), tooltip=tooltip, **_provenance(kinds)
        ),
    ]
    if {"low", "high"} <= set(rows.columns):
        rules = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(strokeWidth=2)
        low = _x("low", quantity, unit, scale)
        layers.insert(0, rules.encode(x=low, x2="high:Q", stroke=_stroke(kinds), tooltip=tooltip))
    if reference is not None:
        layers = _reference(reference, reference_label) + layers
    chart = _panels(alt.layer(*layers), rows, facet, max(22, 15 * len(kinds)) * rows["lines"].nunique())
    if own_scales:
        chart = chart.resolve_scale(x="independent")
    columns = _columns(
        rows, {facet or "": facet or "", "label": "case", "provenance": "provenance"}, _measure(quantity, unit)
    )
    return Figure(chart, question, caption, description, columns, name)


def stacked_pages(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    quantity: str = "I/O operations per transaction",
    unit: str = "",
    reference: float | None = None,
    reference_label: str = "",
    facet: str | None = "operation",
    name: str = "",
) -> Figure:
    """What a whole consists of: one bar per case, its segments the kinds of page.

    `frame` has `label` (the bar: "report's bound", "PostgreSQL 18"), `pages` (the
    segment: "accounts: index leaf"), `value`, `kind` (one of `MARKS`; a bar has one)
    and the `facet` column (by default `operation`: "read", "written"). Segments
    stack in the order in which they first occur; the total stands at the bar's end.
    Printed and simulated bars are outlined (simulated: dashed), measured ones are
    filled. `reference` draws a labelled rule, e.g. the least that is possible.
    """
    rows = _tidy(frame, ["label", "pages", "value", "kind"] + ([facet] if facet else []))
    segments = list(dict.fromkeys(rows["pages"]))
    rows["order"] = rows["pages"].map(segments.index)
    kinds = _present(rows)
    colours = [CATEGORIES[i % len(CATEGORIES)] for i in range(len(segments))]
    scale = alt.Scale(domain=segments, range=colours)
    y = _rows_axis(rows, grid=False)
    segment = _tooltip(rows, {"label": "", "pages": "", "value": quantity, "provenance": ""})
    top = 1.12 * max(rows.groupby([*([facet] if facet else []), "label"])["value"].sum().max(), reference or 0)
    base = alt.Chart().encode(
        y=y,
        x=_x("sum(value)", quantity, unit, alt.Scale(domain=[0, top], nice=False)),
        order="order:Q",
        color=alt.Color("pages:N", title=None, sort=segments, scale=scale, legend=_legend("bottom", 3)),
        tooltip=segment,
    )
    hollow = " || ".join(f"datum.provenance === {json.dumps(m.title)}" for m in MARKS.values() if not m.fill)
    bars = base.transform_filter(f"!({hollow})").mark_bar(height={"band": 0.62})
    # A hollow bar keeps a wash of colour, so that its segments can be told apart.
    hollow_bars = base.transform_filter(hollow)
    washes = hollow_bars.mark_bar(height={"band": 0.62}, opacity=0.2)
    outlines = hollow_bars.mark_bar(height={"band": 0.62}, filled=False, strokeWidth=1.5).encode(
        strokeDash=_dash(kinds, legend=None)
    )
    totals = (
        alt.Chart()
        .mark_text(align="left", dx=5)
        .encode(y=y, x="sum(value):Q", text=alt.Text("sum(value):Q", format=",.3~r"))
    )
    layers = [bars, washes, outlines, totals]
    if reference is not None:
        layers += _reference(reference, reference_label)
    chart = _panels(alt.layer(*layers), rows, facet, 34 * rows["lines"].nunique())
    columns = {facet or "": facet or "", "label": "case", "pages": "pages", "provenance": "provenance"}
    return Figure(chart, question, caption, description, _columns(rows, columns, _measure(quantity, unit)), name)


def observations(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    quantity: str,
    unit: str,
    intervals: pd.DataFrame | None = None,
    facet: str | None = None,
    log: bool = False,
    zero: bool = False,
    name: str = "",
) -> Figure:
    """Every repetition as a tick, above the median and its interval.

    `frame` has `label` (the arm) and `value`, optionally `block` and `kind` (one of
    `MARKS`, else all are `measured`); nothing is left out of the picture. `intervals`
    has `label`, `value`, `low`, `high` and the same optional columns; by default
    `statistics.median` makes them.
    """
    by = ([facet] if facet else []) + ["label", "kind"]
    repetitions = _tidy(frame if "kind" in frame else frame.assign(kind="measured"), [*by, "value"])
    if intervals is None:
        intervals = _medians(repetitions, by)
    medians = _tidy(intervals if "kind" in intervals else intervals.assign(kind="measured"), [*by, "value", "low", "high"])
    rows = pd.concat([repetitions.assign(row="repetition"), medians.assign(row="median")], ignore_index=True)
    kinds = _present(rows)
    rows["lane"] = rows["provenance"] + ", " + rows["row"]
    lanes = [f"{kind}, {row}" for kind in kinds for row in ("repetition", "median")]
    scale = _scale(log, zero)
    value, low = _x("value", quantity, unit, scale), _x("low", quantity, unit, scale)
    tooltip = _tooltip(rows, {"label": "", "provenance": "", "block": "block", "value": quantity, "low": "from", "high": "to"})
    base = alt.Chart().encode(y=_rows_axis(rows), yOffset=alt.YOffset("lane:N", sort=lanes), tooltip=tooltip)
    median = base.transform_filter("datum.row === 'median'")
    marks = _provenance(kinds)
    chart = alt.layer(
        base.transform_filter("datum.row === 'repetition'")
        .mark_point(shape="M0,-1V1", size=170, strokeWidth=1.5, opacity=0.75)  # a tick: it has no inside to fill
        .encode(x=value, stroke=marks["stroke"]),
        median.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q", stroke=marks["stroke"]),
        median.mark_point(size=70, strokeWidth=1.9, opacity=1).encode(x=value, **marks),
    )
    columns = {facet or "": facet or "", "label": "case", "provenance": "provenance", "row": "what", "block": "block"}
    height = 20 * len(lanes) * rows["lines"].nunique()
    return Figure(
        _panels(chart, rows, facet, height),
        question, caption, description, _columns(rows, columns, _measure(quantity, unit)), name,
    )  # fmt: skip


def lines(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    x_quantity: str,
    x_unit: str,
    quantity: str,
    unit: str,
    facet: str | None = None,
    own_scales: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    name: str = "",
) -> Figure:
    """A sweep: `value` over `x`, one line per `series` and kind, bands where intervals are.

    `frame` has `x`, `value`, `kind` (one of `MARKS`) and optionally `series`, `low`
    and `high`; with `own_scales` panels have vertical axes of their own. Colour tells the kind here as everywhere; a series' name stands at
    the end of its line.
    """
    rows = _tidy(frame, ["x", "value", "kind"] + ([facet] if facet else []))
    if "series" not in rows:
        rows["series"] = ""
    if own_scales and facet and {"low", "high"} <= set(rows.columns):
        # bands without a point in a panel would leave that panel's own scale without an extent
        bare = ~rows["low"].notna().groupby(rows[facet]).transform("any")
        rows[["low", "high"]] = rows[["low", "high"]].mask(bare, rows["value"], axis=0)
    kinds = _present(rows)
    rows["named"] = _line_ends(rows, [facet] if facet else [])
    rows["lift"] = _lifts(rows, facet, own_scales, log_y, zero)
    at = sorted(rows["x"].unique())
    ticks = {"values": at} if len(at) <= 10 else {"tickCount": 6}
    x = alt.X("x:Q", title=_measure(x_quantity, x_unit), scale=_scale(log_x), axis=alt.Axis(grid=False, **ticks))
    scale, measure = _scale(log_y, zero), _measure(quantity, unit)
    y = alt.Y("value:Q", title=measure, scale=scale, axis=alt.Axis(tickCount=6))
    words = {"series": "", "provenance": "", "x": x_quantity, "value": quantity, "low": "from", "high": "to"}
    base = alt.Chart().encode(x=x, detail=["series:N", "provenance:N"])
    bands = []
    if {"low", "high"} <= set(rows.columns) and rows["low"].notna().any():
        # colours as they are: a scale here would swallow the points' legend
        rows["band"] = rows["kind"].map({kind: mark.colour for kind, mark in MARKS.items()})
        band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.16)
        bands = [band.encode(y=alt.Y("low:Q", title=measure, scale=scale), y2="high:Q", color=alt.Color("band:N", scale=None, legend=None))]
    paths = base.mark_line(strokeWidth=1.6).encode(y=y, stroke=_stroke(kinds), strokeDash=_dash(kinds))
    points = base.mark_point(size=60, strokeWidth=1.8, opacity=1).encode(
        y=y, tooltip=_tooltip(rows, words), **_provenance(kinds)
    )
    names = (
        base.transform_filter("datum.named")
        .mark_text(align="right", baseline="bottom", dx=4, dy=alt.ExprRef("-8 - datum.lift"), fontWeight="bold")
        .encode(y=y, text="series:N")
    )
    chart = alt.layer(*bands, paths, points, *([names] if rows["named"].any() else []))
    columns = {facet or "": facet or "", "series": "series", "provenance": "provenance", "x": _measure(x_quantity, x_unit)}
    if not rows["named"].any():
        del columns["series"]
    panels = _panels(chart, rows, facet, _LINES_HEIGHT)
    return Figure(
        panels.resolve_scale(y="independent") if own_scales else panels,
        question, caption, description, _columns(rows, columns, _measure(quantity, unit)), name,
    )  # fmt: skip


def slopes(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    x_quantity: str,
    quantity: str,
    reference: float | None = None,
    reference_label: str = "",
    name: str = "",
) -> Figure:
    """What became of many numbers: a thin line each from where it was printed to where it was found, on a log axis.

    `frame` has `series` (the line), `x` (a year), `value` (positive), `kind` (one of `MARKS`), `verdict` (what became of
    it), `colour` (of the line) and `strong` (whether it stands out), optionally `low` and `high`. Lines carry no names; the tooltip and
    the table do. `reference` draws a labelled horizontal rule.
    """
    rows = _tidy(frame, ["series", "x", "value", "kind", "verdict", "colour", "strong"])
    kinds = _present(rows)
    x = alt.X("x:Q", title=None, scale=alt.Scale(nice=False, padding=16), axis=alt.Axis(values=sorted(rows["x"].unique()), format="d", grid=False))
    y = {"scale": _scale(log=True), "title": quantity, "axis": alt.Axis(tickCount=6, format="~g")}
    weight = {"condition": {"test": "datum.strong", "value": 0.85}, "value": 0.28}
    words = {"series": "", "provenance": "", "x": x_quantity, "value": quantity, "low": "from", "high": "to", "verdict": ""}
    base = alt.Chart().encode(x=x, detail="series:N", opacity=weight, tooltip=_tooltip(rows, words))
    layers = [
        base.mark_line(strokeWidth=1.7).encode(y=alt.Y("value:Q", **y), color=alt.Color("colour:N", scale=None, legend=None)),
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", **y), y2="high:Q", stroke=_stroke(kinds)),
        base.mark_point(size=60, strokeWidth=1.7).encode(y=alt.Y("value:Q", **y), **_provenance(kinds)),
    ]
    if reference is not None:
        one = alt.Chart(alt.Data(values=[{}]))
        rule = one.mark_rule(color=_REFERENCE, strokeDash=[5, 3], strokeWidth=1.3).encode(y=alt.datum(reference))
        text = one.mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=11)
        layers = [rule, *layers, text.encode(y=alt.datum(reference), x=alt.value(0), text=alt.value(reference_label))]
    columns = _columns(rows, {"series": "claim", "provenance": "provenance", "x": x_quantity, "verdict": "verdict"}, quantity)
    return Figure(_panels(alt.layer(*layers), rows, None, 380), question, caption, description, columns, name)


def flame(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    quantity: str,
    name: str = "",
) -> Figure:
    """A flame graph: what calls what, each frame as wide as its share; click a frame to look into it.

    `frame` has a row per stack: `stack` (function names from the outermost on, joined by ";"), `value`
    (its own cost) and `group` (a category, drawn as the colour of the stack's last function). Frames are drawn
    top down, callees in the order of their cost; a frame is as wide as itself and all it calls.
    A second click, or one beside the frames, shows everything again. ValueError if a column is missing.
    """
    if missing := [column for column in ("stack", "value", "group") if column not in frame]:
        raise ValueError(f"the frame of a flame graph lacks {', '.join(missing)}")
    rows = _flame_rows(frame)
    groups = list(dict.fromkeys(rows.sort_values("share", ascending=False)["group"]))
    colours = [*CATEGORIES, *["#B4BAC2"] * len(groups)][: len(groups)]
    # An expression and not a scale's domain: a frame that is clicked must fill the width at any size of the page.
    low, high = "(look.start ? look.start[0] : 0)", "(look.end ? look.end[0] : 100)"
    look = alt.selection_point(name="look", fields=["start", "end"], on="click", clear="dblclick", empty=True)
    left = f"(max(datum.start, {low}) - {low}) / ({high} - {low})"
    right = f"(min(datum.end, {high}) - {low}) / ({high} - {low})"
    base = (
        alt.Chart()
        .transform_filter(f"datum.end > {low} + 1e-6 && datum.start < {high} - 1e-6")
        .transform_calculate(left=left, right=right)
        .transform_calculate(shown="(datum.right - datum.left) * width > 30 ? truncate(datum.function, floor((datum.right - datum.left) * width / 6.6)) : ''")
    )
    x = alt.X("left:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    y = alt.Y("depth:O", axis=None, scale=alt.Scale(paddingInner=0.06))
    colour = alt.Color("group:N", title=None, scale=alt.Scale(domain=groups, range=colours), legend=_legend("bottom", 3))
    tooltip = [
        alt.Tooltip("function:N"), alt.Tooltip("group:N", title="part"), alt.Tooltip("share:Q", title=f"% {quantity}", format=".3~g"),
        alt.Tooltip("own:Q", title="% its own", format=".3~g"),
    ]  # fmt: skip
    # without strokes and half filled, so that the text on it can be read in both themes
    frames = base.mark_rect(fillOpacity=0.42, stroke=None, cursor="pointer").encode(x=x, x2="right:Q", y=y, color=colour, tooltip=tooltip).add_params(look)
    texts = base.mark_text(align="left", baseline="middle", dx=3, fontSize=11).encode(x=x, y=y, text="shown:N")
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = alt.layer(frames, texts).properties(data=rows, width="container", height=18 * int(rows["depth"].max() + 1), autosize=fit)
    columns = {"depth": "depth", "function": "function", "group": "part", "share": f"% {quantity}", "own": "% its own"}
    return Figure(chart, question, caption, description, columns, name)


def _flame_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per frame: depth, function, group, start and end (percent, side by side below their caller), share, own."""
    total = frame["value"].sum()
    inclusive: dict[tuple, float] = {}
    own: dict[tuple, float] = {}
    group: dict[str, str] = {}
    for stack, value, part in zip(frame["stack"], frame["value"], frame["group"]):
        names = tuple(stack.split(";"))
        group.setdefault(names[-1], part)
        own[names] = own.get(names, 0.0) + value
        for depth in range(1, len(names) + 1):
            inclusive[names[:depth]] = inclusive.get(names[:depth], 0.0) + value
    rows, place = [], {(): 0.0}
    for names in sorted(inclusive, key=lambda names: (len(names), -inclusive[names])):
        start = place[names[:-1]]
        width = 100 * inclusive[names] / total
        place[names[:-1]] = start + width
        place[names] = start
        rows.append((len(names) - 1, names[-1], group.get(names[-1], ""), start, start + width, width, 100 * own.get(names, 0.0) / total))
    return pd.DataFrame(rows, columns=["depth", "function", "group", "start", "end", "share", "own"])


@dataclass(frozen=True)
class _Pointer:
    """How a line pointer of a page is drawn."""

    title: str
    colour: str


# By the state of a line pointer, and for a normal one whether its tuple is the current version.
_POINTERS: Mapping[str, _Pointer] = {
    "normal": _Pointer("current version", "#2F7CC0"),
    "old": _Pointer("replaced version", "#B5579B"),
    "redirect": _Pointer("redirect", "#128A68"),
    "dead": _Pointer("dead", "#C44E52"),
    "unused": _Pointer("unused", "#7F858D"),
}


def heap_pages(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    per_row: int = 5,
    name: str = "",
) -> Figure:
    """Pages of a table, line pointer by line pointer, side by side: one page, or one in several states.

    `frame` has a row per line pointer: `page` (the picture's title, drawn in the order of first
    occurrence), `line_pointer` (from 1), `state` ("normal", "redirect", "dead", "unused") and `to`
    (the line pointer that a redirect or a version's chain goes on to; missing if none), as
    `instruments.pages.heap_page` reads them; optionally `tuple` (a short name), `old` (a later version
    was committed), `heap_only`, and `entries` (index entries that point here). Arrows follow `to`; a
    heap-only tuple has a dashed outline; a triangle points to where index entries point.
    ValueError if a column is missing or a state unknown.
    """
    rows = _page_rows(frame, per_row)
    kinds = [pointer.title for pointer in _POINTERS.values() if (rows["what"] == pointer.title).any()]
    colours = [next(p.colour for p in _POINTERS.values() if p.title == kind) for kind in kinds]
    height = float(rows["bottom"].max())
    x = alt.Scale(domain=[-0.08, min(per_row, rows["page"].nunique())], nice=False)
    y = alt.Scale(domain=[0, height], reverse=True, nice=False)

    def at(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=x, axis=None)

    def level(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=y, axis=None)

    tooltip = [alt.Tooltip(f"{field}:N", title=title) for field, title in _PAGE_COLUMNS.items() if field in rows]
    colour = {
        "stroke": alt.Stroke("what:N", title=None, scale=alt.Scale(domain=kinds, range=colours), legend=_legend("top", 5)),
        "fill": alt.Fill("what:N", title=None, scale=alt.Scale(domain=kinds, range=colours), legend=_legend("top", 5)),
    }
    base = alt.Chart()
    cells = [
        base.transform_filter(f"{heap_only}datum.heap_only")
        .mark_rect(fillOpacity=0.16, strokeWidth=1.6, strokeDash=dash)
        .encode(x=at("left"), x2="right:Q", y=level("top"), y2="bottom:Q", tooltip=tooltip, **colour)
        for heap_only, dash in (("!", [1, 0]), ("", [4, 2.5]))
    ]
    texts = base.mark_text(align="left", fontSize=11, dx=4).encode(x=at("left"), y=level("middle"), text="shown:N")
    titles = (
        base.transform_filter("datum.title !== null")
        .mark_text(align="left", baseline="top", fontSize=11, fontWeight="bold", lineBreak="\n", lineHeight=13)
        .encode(x=at("left"), y=level("above"), text="title:N")
    )
    entries = base.transform_filter("datum.entries > 0").mark_point(shape="triangle-right", size=34, filled=True, color=_REFERENCE, opacity=1)
    onward = base.transform_filter("isValid(datum.target)")
    arrow = {"color": _REFERENCE, "strokeWidth": 1.4}
    arrows = [
        onward.mark_rule(**arrow).encode(x=at("right"), x2="lane:Q", y=level("middle")),
        onward.mark_rule(**arrow).encode(x=at("lane"), y=level("middle"), y2="target:Q"),
        onward.mark_rule(**arrow).encode(x=at("right"), x2="lane:Q", y=level("target")),
        onward.mark_point(shape="triangle-left", size=34, filled=True, color=_REFERENCE, opacity=1, xOffset=3).encode(x=at("right"), y=level("target")),
    ]
    layers = [*cells, texts, titles, *arrows]
    if "entries" in rows:
        layers.append(entries.encode(x=at("pointed"), y=level("middle"), tooltip=tooltip))
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = alt.layer(*layers).properties(data=rows, width="container", height=17 * height, autosize=fit)
    columns = {field: title for field, title in _PAGE_COLUMNS.items() if field in rows}
    return Figure(chart, question, caption, description, columns, name)


_PAGE_COLUMNS = {
    "page": "page", "line_pointer": "line pointer", "what": "what it is", "tuple": "tuple", "to": "goes on to line pointer",
    "heap_only": "heap-only", "entries": "index entries",
}  # fmt: skip


def _page_rows(frame: pd.DataFrame, per_row: int) -> pd.DataFrame:
    """`frame` with the place of every line pointer on the drawing: a line is 1 high, a page 1 wide."""
    missing = [column for column in ("page", "line_pointer", "state", "to") if column not in frame]
    if missing:
        raise ValueError(f"the frame of a page lacks {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}")
    if frame.empty:
        raise ValueError("the frame of a page is empty")
    states = [state for state in _POINTERS if state != "old"]
    if unknown := set(frame["state"]) - set(states):
        raise ValueError(f"unknown state of a line pointer: {', '.join(map(str, unknown))}; known: {', '.join(states)}")
    rows = frame.drop(columns=[c for c in frame if c not in {*_PAGE_COLUMNS, "state", "old"}])
    old = rows["old"].astype(bool) if "old" in rows else pd.Series(False, index=rows.index)
    rows["what"] = [_POINTERS["old" if o and s == "normal" else s].title for s, o in zip(rows["state"], old)]
    rows["heap_only"] = rows["heap_only"].astype(bool) if "heap_only" in rows else False
    names = rows["tuple"] if "tuple" in rows else pd.Series("", index=rows.index)
    rows["shown"] = [f"{number}  {name}".rstrip() for number, name in zip(rows["line_pointer"], names)]
    titles = list(dict.fromkeys(rows["page"]))
    wrapped = {title: textwrap.wrap(title, _TITLE_WIDTH, break_long_words=False) for title in titles}
    number = rows["page"].map(titles.index)
    column, line = number % per_row, number // per_row
    heading = max(map(len, wrapped.values()))
    tall = rows["line_pointer"].max() + heading + 0.6
    first = line * tall + heading
    rows["left"], rows["right"] = column + 0.06, column + 0.68
    rows["pointed"] = column + 0.01
    rows["top"] = first + rows["line_pointer"] - 1 + 0.1
    rows["bottom"], rows["middle"] = rows["top"] + 0.8, rows["top"] + 0.4
    rows["target"] = first + rows["to"].astype("Float64") - 0.5
    # every arrow of a page turns in a lane of its own, the longest one outermost
    length = (rows["target"] - rows["middle"]).abs()
    lanes = length.groupby(rows["page"]).rank(method="first")
    rows["lane"] = rows["right"] + 0.02 + min(0.05, 0.28 / max(lanes.fillna(0).max(), 1)) * lanes  # none reaches the next page
    uppermost = rows["line_pointer"] == rows.groupby("page")["line_pointer"].transform("min")
    rows["title"] = [chr(10).join(wrapped[page]) if up else None for page, up in zip(rows["page"], uppermost)]
    rows["above"] = first - 0.8 * rows["page"].map(lambda page: len(wrapped[page]))
    return rows.drop(columns=["state", "old"], errors="ignore")


_TITLE_WIDTH = 8  # characters above a page: five pages stand side by side on a phone


def plan_diagram(
    frame: pd.DataFrame,
    *,
    question: str,
    caption: str,
    description: str,
    x_quantity: str,
    y_quantity: str,
    name: str = "",
) -> Figure:
    """Which plan an optimizer takes over a grid of two selectivities; a click on a region shows its plan.

    `frame` has a row per point of the grid: `x` and `y` (from 0 to 1, the same values for all rows and columns),
    `plan` (the plan's tree, one node a line), `title` (its kind in two or three words) and `cost`. Neighbours of one
    plan are drawn as one rectangle up to halfway to the next point; both axes are of the square root, since plans
    change where few tuples qualify. Plans are lettered by the area that they cover; beyond the number of colours the
    smallest share the last. ValueError if a column is missing or the grid has holes.
    """
    rows, plans = _plan_rows(frame)
    domain = list(dict.fromkeys(plans["legend"]))
    colours = [CATEGORIES[n % len(CATEGORIES)] for n in range(len(domain))]
    lines = max(plans["plan"].str.count("\n").max() + 4, 5)
    above, edge = 15 * int(lines), 300

    def axis(field: str, quantity: str, extent: list[float] | None) -> dict[str, Any]:
        scale = alt.Scale(type="sqrt", domain=[0, 1], nice=False, **({"range": extent} if extent else {}))
        ticks = alt.Axis(values=[0, 0.01, 0.05, 0.1, 0.2, 0.5, 1], grid=False, format="~r")
        return {"field": field, "type": "quantitative", "scale": scale, "axis": ticks, "title": quantity}

    clicked = alt.selection_point(name="region", fields=["letter"], on="click", clear="dblclick", empty=False)
    dimmed = {"condition": {"param": "region", "empty": True, "value": 0.9}, "value": 0.25}  # nothing clicked dims nothing
    shown = {"field": "legend", "type": "nominal", "title": None, "sort": domain}
    colour = alt.Color(**shown, scale=alt.Scale(domain=domain, range=colours), legend=_legend("bottom", 2))
    tooltip = [alt.Tooltip(f"{field}:{kind}", title=title, **more) for field, kind, title, more in (
        ("letter", "N", "plan", {}), ("title", "N", "kind", {}), ("left", "Q", f"{x_quantity}, from", {"format": ".3f"}), ("right", "Q", "to", {"format": ".3f"}),
        ("bottom", "Q", f"{y_quantity}, from", {"format": ".3f"}), ("top", "Q", "to", {"format": ".3f"}), ("least_cost", "Q", "cost from", {"format": ".0f"}), ("most_cost", "Q", "cost to", {"format": ".0f"}),
    )]  # fmt: skip
    base = alt.Chart()
    cells = base.mark_rect(strokeWidth=0.4).encode(
        x=alt.X(**axis("left", x_quantity, None)), x2="right:Q", y=alt.Y(**axis("bottom", y_quantity, [above + edge, above])), y2="top:Q",
        color=colour, stroke=alt.Stroke(**shown, scale=alt.Scale(domain=domain, range=colours), legend=_legend("bottom", 2)), tooltip=tooltip,
        opacity=dimmed,
    )  # fmt: skip
    letters = base.transform_filter("datum.named").mark_text(fontWeight="bold", fill="white").encode(
        x=alt.X("middle_x:Q"), y=alt.Y("middle_y:Q"), text="letter:N"
    )
    hint = base.transform_filter("datum.first").mark_text(align="left", baseline="top", fontStyle="italic")
    tree = base.transform_filter("datum.first_of_plan").transform_filter(clicked).mark_text(align="left", baseline="top", lineBreak="\n", lineHeight=15)
    hint = hint.encode(text=alt.value("Click a region to see its plan."), x=alt.value(0), y=alt.value(0))
    tree = tree.encode(text="spelt:N", x=alt.value(0), y=alt.value(18))
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = alt.layer(cells.add_params(clicked), letters, hint, tree).properties(data=rows, width="container", height=above + edge, autosize=fit)
    columns = {
        "letter": "plan", "title": "kind", "left": f"{x_quantity}, from", "right": "to", "bottom": f"{y_quantity}, from", "top": "to",
        "least_cost": "cost from", "most_cost": "cost to",
    }  # fmt: skip
    return Figure(chart, question, caption, description, columns, name)


def _plan_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rectangles of a plan diagram, and its plans (indexed by tree, with letter, legend and share), largest first."""
    missing = [column for column in ("x", "y", "plan", "title", "cost") if column not in frame]
    if missing:
        raise ValueError(f"the frame of a plan diagram lacks {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}")
    at = {axis: sorted(frame[axis].unique()) for axis in ("x", "y")}
    if frame.empty or len(frame) != len(at["x"]) * len(at["y"]) or frame.duplicated(["x", "y"]).any():
        raise ValueError(f"a plan diagram needs every point of its grid once: {len(at['x'])} by {len(at['y'])} points, {len(frame)} rows")
    plans = frame.groupby("plan", sort=False).agg(title=("title", "first"), points=("x", "size"))
    plans = plans.sort_values("points", ascending=False, kind="stable")
    plans["letter"] = [chr(ord("A") + n) if n < len(CATEGORIES) - 1 or len(plans) == len(CATEGORIES) else "+" for n in range(len(plans))]
    plans["share"] = plans["points"] / len(frame)
    plans["legend"] = [f"{plan.letter}: {plan.title}" if plan.letter != "+" else "+: others" for plan in plans.itertuples()]
    edges = {axis: [0.0, *((a + b) / 2 for a, b in zip(values, values[1:])), 1.0] for axis, values in at.items()}
    rows = []
    for (y, _), line in frame.sort_values(["y", "x"]).assign(run=lambda f: (f["plan"] != f["plan"].shift()).cumsum()).groupby(["y", "run"], sort=False):
        first, last, up = at["x"].index(line["x"].iloc[0]), at["x"].index(line["x"].iloc[-1]), at["y"].index(y)
        rows.append(
            {"plan": line["plan"].iloc[0], "left": edges["x"][first], "right": edges["x"][last + 1], "bottom": edges["y"][up], "top": edges["y"][up + 1]}
            | {"least_cost": line["cost"].min(), "most_cost": line["cost"].max()}
        )  # fmt: skip
    cells = _stacked(pd.DataFrame(rows)).join(plans[["title", "letter", "legend"]], on="plan")
    cells["middle_x"], cells["middle_y"] = (((cells[a] ** 0.5 + cells[b] ** 0.5) / 2) ** 2 for a, b in (("left", "right"), ("bottom", "top")))
    area = (cells["right"] ** 0.5 - cells["left"] ** 0.5) * (cells["top"] ** 0.5 - cells["bottom"] ** 0.5)
    cells["named"] = (area > 0.012) & (area == area.groupby(cells["plan"]).transform("max"))
    cells["first"], cells["first_of_plan"] = cells.index == 0, ~cells.duplicated("letter")
    cells["spelt"] = [f"{row.letter}: {row.plan}" if row.first_of_plan else "" for row in cells.itertuples()]
    return cells.drop(columns="plan"), plans.reset_index()


def _stacked(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of the same plan, left and right edge that lie upon another, as one."""
    cells = cells.sort_values(["plan", "left", "right", "bottom"])
    same = (cells[["plan", "left", "right"]] == cells[["plan", "left", "right"]].shift()).all(axis=1) & (cells["bottom"] == cells["top"].shift())
    merged = cells.groupby((~same).cumsum()).agg(
        {"plan": "first", "left": "first", "right": "first", "bottom": "first", "top": "last", "least_cost": "min", "most_cost": "max"}
    )
    return merged.reset_index(drop=True)


# --- what the charts share ----------------------------------------------------------


def _tidy(frame: pd.DataFrame, needed: Sequence[str]) -> pd.DataFrame:
    missing = [column for column in needed if column not in frame]
    if missing:
        raise ValueError(f"the frame of a chart lacks {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}")
    if frame.empty:
        raise ValueError("the frame of a chart is empty")
    rows = frame.copy()
    unknown = set(rows["kind"]) - set(MARKS)
    if unknown:
        raise ValueError(f"unknown kind of number: {', '.join(map(str, unknown))}; known: {', '.join(MARKS)}")
    rows["provenance"] = rows["kind"].map(lambda kind: MARKS[kind].title)
    if "label" in rows:
        rows["label"] = rows["label"].astype(str)
        rows["lines"] = rows["label"].map(lambda label: textwrap.fill(label, _LABEL_WIDTH))
    return rows


def _present(rows: pd.DataFrame) -> list[str]:
    return [mark.title for kind, mark in MARKS.items() if (rows["kind"] == kind).any()]


def _by_title(titles: Sequence[str]) -> list[Mark]:
    return [next(mark for mark in MARKS.values() if mark.title == title) for title in titles]


def _legend(orient: str, columns: int) -> alt.Legend:
    return alt.Legend(
        orient=orient, direction="horizontal", title=None, symbolSize=85, symbolStrokeWidth=1.8, symbolOpacity=1, labelLimit=240,
        columns=columns, columnPadding=14, offset=24 if orient == "top" else 18,  # the page's script fits the columns to its width
    )  # fmt: skip


def _stroke(kinds: list[str]) -> alt.Stroke:
    scale = alt.Scale(domain=kinds, range=[mark.colour for mark in _by_title(kinds)])
    return alt.Stroke("provenance:N", title=None, scale=scale, legend=_legend("top", 4))


def _dash(kinds: list[str], legend: Any = alt.Undefined) -> alt.StrokeDash:
    scale = alt.Scale(domain=kinds, range=[list(mark.dash) for mark in _by_title(kinds)])
    legend = _legend("top", 4) if legend is alt.Undefined else legend
    return alt.StrokeDash("provenance:N", title=None, scale=scale, legend=legend)


def _provenance(kinds: list[str]) -> dict[str, Any]:
    """The encodings that make a point's provenance: outline, fill, shape and dash."""
    marks = _by_title(kinds)
    fills = [mark.colour if mark.fill else "transparent" for mark in marks]
    legend = _legend("top", 4)
    return {
        "stroke": _stroke(kinds),
        "fill": alt.Fill("provenance:N", title=None, scale=alt.Scale(domain=kinds, range=fills), legend=legend),
        "shape": alt.Shape(
            "provenance:N", title=None, legend=legend,
            scale=alt.Scale(domain=kinds, range=[mark.shape for mark in marks]),
        ),
        "strokeDash": _dash(kinds),
    }  # fmt: skip


def _rows_axis(rows: pd.DataFrame, grid: bool = True) -> alt.Y:
    words = "split(datum.label, '\\n')"
    axis = alt.Axis(labelExpr=words, labelLimit=200, ticks=False, domain=False, grid=grid, labelPadding=10)
    return alt.Y("lines:N", sort=list(dict.fromkeys(rows["lines"])), title=None, axis=axis)


def _line_ends(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """True on the row beside which the name of its series is written, if it has one."""
    named = pd.Series(False, index=rows.index)
    # beside the reader's own line rather than the print's
    rank = rows["kind"].map(["simulated", "printed", "published", "measured"].index)
    order = rows.assign(rank=rank).sort_values(["rank", "x"])
    ends = order[order["series"].astype(str) != ""].groupby([*by, "series"]).tail(1).index
    named.loc[ends] = True
    return named


_LINES_HEIGHT, _NAME_HEIGHT = 260, 14  # pixels of a panel of lines, and of a name at a line's end


def _lifts(rows: pd.DataFrame, facet: str | None, own_scales: bool, log: bool, zero: bool) -> pd.Series:
    """Pixels by which each line's name moves up, so that names of lines that end together don't cover each other."""
    lifts = pd.Series(0.0, index=rows.index)
    height = rows["value"].where(rows["value"] > 0).map(math.log) if log else rows["value"]
    for _, panel in rows.groupby(facet) if facet else [("", rows)]:
        seen = height[panel.index] if own_scales else height
        least, most = (min(seen.min(), 0), max(seen.max(), 0)) if zero and not log else (seen.min(), seen.max())
        pixels = (height - least) * _LINES_HEIGHT / ((most - least) or 1)
        for _, ends in panel[panel["named"]].groupby("x"):
            free = -math.inf
            for end in pixels[ends.index].sort_values().index:
                lifts[end] = max(0.0, free - pixels[end])
                free = pixels[end] + lifts[end] + _NAME_HEIGHT
    return lifts


def _scale(log: bool = False, zero: bool = False) -> alt.Scale:
    return alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=zero, nice=True)


def _x(field: str, quantity: str, unit: str, scale: alt.Scale) -> alt.X:
    return alt.X(f"{field}:Q", title=_measure(quantity, unit), scale=scale, axis=alt.Axis(tickCount=5))


def _measure(quantity: str, unit: str) -> str:
    return f"{quantity} ({unit})" if unit else quantity


def _tooltip(rows: pd.DataFrame, titles: Mapping[str, str]) -> list[alt.Tooltip]:
    def one(field: str, title: str) -> alt.Tooltip:
        numeric = pd.api.types.is_numeric_dtype(rows[field])
        name = title or {"label": "case"}.get(field, field)
        return alt.Tooltip(f"{field}:{'Q' if numeric else 'N'}", title=name, **({"format": ".4~g"} if numeric else {}))

    return [one(field, title) for field, title in titles.items() if field in rows]


def _reference(value: float, label: str) -> list[alt.Chart]:
    one = alt.Data(values=[{}])  # one rule, not one per row of the chart's data
    rule = alt.Chart(one).mark_rule(color=_REFERENCE, strokeDash=[5, 3], strokeWidth=1.3).encode(x=alt.datum(value))
    if not label:
        return [rule]
    words = alt.Chart(one).mark_text(align="center", baseline="bottom", dy=-4, fontSize=11)
    return [rule, words.encode(x=alt.datum(value), y=alt.value(0), text=alt.value(label))]


def _panels(layers: alt.LayerChart, rows: pd.DataFrame, facet: str | None, height: float) -> alt.TopLevelMixin:
    if facet is None:
        fit = alt.AutoSizeParams(type="fit-x", contains="padding")  # the legend takes no height from the plot
        return layers.properties(data=rows, width="container", height=height, autosize=fit)
    # Vega-Lite can't fit panels to a container; the page's script sets the panel's width.
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start", labelFontWeight="bold", labelPadding=4)
    row = alt.Row(f"{facet}:N", sort=list(dict.fromkeys(rows[facet])), header=header)
    return layers.properties(width=480, height=height).facet(row=row, data=rows)


def _columns(rows: pd.DataFrame, words: Mapping[str, str], measure: str) -> dict[str, str]:
    known = {field: title for field, title in words.items() if field in rows}
    known["value"] = measure
    return known | {field: title for field, title in {"low": "from", "high": "to"}.items() if field in rows}


def _medians(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    from . import statistics

    def one(values: pd.Series) -> dict[str, float]:
        interval = statistics.median(values.to_numpy())
        return {"value": interval.estimate, "low": interval.low, "high": interval.high}

    return pd.DataFrame([dict(zip(by, key)) | one(group["value"]) for key, group in rows.groupby(by, sort=False)])
