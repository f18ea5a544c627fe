"""How a chart travels from a notebook into a page: its words, its marks and its outputs."""

import html
import json
import re
import textwrap
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import altair as alt
import vl_convert

from pgrerun.errors import BookError

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
    "published-slowed": Mark("published run, slowed disk", "#6F8F80", "triangle-up", fill=True),
    "slowed": Mark("this run, slowed disk", "#128A68", "triangle-up", fill=True),
    "simulated": Mark("simulated", "#A0609F", "square", fill=False, dash=(2.5, 1.8)),
    "gathered": Mark("all runs", "#5C78B8", "square", fill=True),
}


#: neighbours in a stack differ in hue and in lightness
CATEGORIES = (
    "#2F7CC0",
    "#D55E00",
    "#128A68",
    "#B5579B",
    "#8C6D31",
    "#7277D5",
    "#C44E52",
    "#4A8A94",
    "#8A8410",
    "#7F858D",
)


#: of a verdict's word, wherever one is drawn; each keeps the same contrast, and the words stand
#: beside, so that colour alone tells nothing
VERDICTS: Mapping[str, str] = {
    "holds": "#128A68",
    "stronger": "#1B87A6",
    "weaker": "#8A8410",
    "partly": "#6B8A1F",
    "not reproduced": "#A7742B",
    "no effect": "#B8612A",
    "not so": "#B4583F",
    "different now": "#9A6A5A",
    "reversed": "#C44E52",
    "still there": "#B5579B",
    "fixed": "#4A8A94",
    "inconclusive": "#7277D5",
    "not tested here": "#7F858D",
}


GREY = "#7F858D"


_PICTURE_WIDTH = 640


_LEAST_PANEL = 120


_LEGEND_COLUMN = 160


@dataclass(frozen=True)
class Words:
    """What a chart says in words.

    question     its title
    caption      what is drawn, and what it shows
    name         names the download and the anchor ("" makes one of the question)
    description  what is read aloud; "" for the chart's data in words
    """

    question: str
    caption: str
    name: str = ""
    description: str = ""


# of what, and in what?
_VAGUE = {"value", "values", "median", "mean", "number", "count", "result", "amount", "measure"}


@dataclass(frozen=True)
class Axis:
    """What a number is: quantity and unit ("" for a ratio) make the title.

    `log` and `zero` choose the scale: logarithmic, or beginning at 0. Of `years` none is written as
    2,003. With `even` each number that
    occurs has a place of its own at the same distance from the next, and its label (for the `x` of
    `lines`: releases, of which 9.6 and 10 are neighbours). The quantity is "" where panels have
    scales of their own and each one's heading says quantity and unit. BookError for a word that
    names no quantity.
    """

    __pydantic_config__ = {"extra": "forbid"}  # of charts.toml, whose misspelt words are refused

    quantity: str = ""
    unit: str = ""
    log: bool = False
    zero: bool = False
    even: bool = False
    years: bool = False

    def __post_init__(self):
        if self.quantity.lower().removeprefix("printed ") in _VAGUE:
            raise BookError(
                f"An axis can't be called {self.quantity!r}: name the quantity and its unit, or"
                " nothing where the panels' headings do."
            )

    @property
    def title(self) -> str:
        """What stands beside it: the quantity and its unit."""
        return f"{self.quantity} ({self.unit})" if self.unit else self.quantity

    @property
    def heading(self) -> str:
        """What a table's column and a tooltip call it."""
        return self.quantity or "amount"


@dataclass(frozen=True)
class Reference:
    """A labelled rule across a chart: 1 for a ratio, the least that is possible."""

    __pydantic_config__ = {"extra": "forbid"}

    value: float
    label: str = ""


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
                raise BookError(
                    f"A chart has no {word}: give every chart a question, a caption and a"
                    " description."
                )

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
        spec = {key: value for key, value in chart.to_dict().items() if key != "config"}
        drawn = json.dumps({name: part for name, part in spec.items() if name != "datasets"})
        spec["datasets"] = {
            name: [self._shortened(row, drawn) for row in rows]
            for name, rows in spec["datasets"].items()
        }
        return spec

    def _shortened(self, row: Mapping[str, Any], drawn: str) -> dict[str, Any]:
        """Nine digits of each number, as no instrument gives more, and of what the table doesn't
        show nothing that is false or isn't `drawn`: a page carries every row.
        """
        return {
            name: float(f"{value:.9g}") if isinstance(value, float) else value
            for name, value in row.items()
            if name in self.columns
            or not (
                value is False or (name in _USUAL and value == _USUAL[name]) or name not in drawn
            )
        }

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        """Specification, HTML with a picture inside, and plain text."""
        spec = self.spec()
        title = {"text": textwrap.wrap(self.question, 72), "anchor": "start"}
        return {
            VEGALITE_MIME: spec | {"title": title},
            "text/html": _html(spec),
            "text/plain": f"{self.question}\n{self.caption}\n[chart: {self.description}]",
        }


# what most rows have of what few need
_USUAL = {"ending": "", "spelt": "", "lift": 0.0, "middle_x": None, "middle_y": None}


def figure_of(
    chart: alt.TopLevelMixin, words: Words, columns: Mapping[str, str], description: str
) -> Figure:
    """`description` is the chart's data in words, for where `words` has no description."""
    spoken = words.description or str(description)
    return Figure(chart, words.question, words.caption, spoken, columns, words.name)


def slug(words: str) -> str:
    """`words` as a file name and an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60].strip("-")


def svg(figure: Figure, width: int = _PICTURE_WIDTH, dark: bool = False) -> str:
    """The figure as SVG for a page of its own, light or dark; `width` in pixels, about."""
    config = DARK if dark else LIGHT
    spec = with_legends(
        {"background": "transparent", "config": config} | figure.spec(),
        columns=max(1, width // _LEGEND_COLUMN),
    )
    if spec.get("width") == "container":
        spec["width"] = width
    picture = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE_VERSION)
    if "spec" in spec:  # panels, beside whose own width the axis takes what it takes
        panels = spec.get("columns", 1)
        whole = float(re.search(r'width="([0-9.]+)"', picture)[1])
        beside = whole - panels * spec["spec"]["width"]
        spec["spec"] = spec["spec"] | {"width": max(_LEAST_PANEL, (width - beside) / panels)}
        picture = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE_VERSION)
    return picture


def with_legends(spec: Any, columns: int) -> Any:
    """The specification, with no legend wider than so many columns."""
    if isinstance(spec, list):
        return [with_legends(part, columns) for part in spec]
    if not isinstance(spec, dict):
        return spec
    found = {
        name: part if name == "datasets" else with_legends(part, columns)
        for name, part in spec.items()
    }
    if isinstance(legend := found.get("legend"), dict) and "columns" in legend:
        found["legend"] = legend | {"columns": min(legend["columns"], columns)}
    return found


def _html(spec: dict[str, Any]) -> str:
    # The picture is the chart for readers without our script: Jupyter Lab, a printed
    # notebook, an e-book. As an <img> its clip paths can't collide with another's.
    fixed = {"background": "white", "config": LIGHT} | spec
    if spec.get("width") == "container":
        fixed["width"] = _PICTURE_WIDTH
    svg = lean(vl_convert.vegalite_to_svg(fixed, vl_version=VEGALITE_VERSION))
    # for an attribute in single quotes; shorter than in base64
    picture = SVG_DATA + urllib.parse.quote(svg, safe=' ="/:;,.()+~!*>')
    # "</script>" or "<!--" in a label must not end the element
    data = json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    said = spec["usermeta"] | {"description": spec["description"]}
    name, question, caption, description = (
        html.escape(said[key]) for key in ("name", "question", "caption", "description")
    )
    return (
        f'<figure class="vl-figure" id="chart-{name}">\n'
        f'<p class="vl-question">{question}</p>\n'
        f'<div class="vl-chart"><img alt="{description}"'
        f" src='{picture}'></div>\n"
        f'<script type="application/json" class="vl-spec">{data}</script>\n'
        f"<figcaption>{caption}</figcaption>\n"
        "</figure>"
    )


# Nobody is read what stands inside an <img>, nobody points at it, a tenth of a pixel is not seen,
# and neither are marks that only a pointer finds: most of a page's weight was these.
_SVG = "http://www.w3.org/2000/svg"
SVG_DATA = "data:image/svg+xml,"
_LEFT_OUT = re.compile("aria-.*|role|class|pointer-events")
_DEFAULTS = {"opacity": "1", "stroke-dasharray": "1,0", "font-weight": "normal"}
_PLACES = ("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height")
_LONG = re.compile(r"\d+\.\d{2,}")
_PAINT = ("fill", "stroke", "stroke-width", "font-family", "font-size", "text-anchor")


def lean(svg: str) -> str:
    """The picture with nothing in it that an <img> doesn't show."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    _thin(root, painted=False)
    return ElementTree.tostring(root, encoding="unicode")


def _thin(node: ElementTree.Element, painted: bool) -> None:
    """Take out of a node what isn't seen; `painted` is whether it inherits a colour."""
    for name, value in list(node.attrib.items()):
        if _LEFT_OUT.fullmatch(name) or _DEFAULTS.get(name) == value:
            del node.attrib[name]
        elif name in _PLACES:
            node.set(name, _LONG.sub(lambda x: f"{float(x[0]):.1f}".removesuffix(".0"), value))
    if node.tag == f"{{{_SVG}}}defs":
        return
    kept = []
    for child in node:
        colours = [child.get(name, "none") for name in ("fill", "stroke")]
        seen = painted or colours != ["none", "none"]
        _thin(child, seen)
        kept += _shown(child, seen)
    node[:] = kept
    for name in _PAINT if len(kept) > 1 else ():  # said once for all, which inherit it
        values = {child.get(name) for child in kept}
        if node.tag == _GROUP and len(values) == 1 and None not in values:
            node.set(name, values.pop())
            for child in kept:
                del child.attrib[name]


_GROUP = f"{{{_SVG}}}g"


def _shown(child: ElementTree.Element, seen: bool) -> list[ElementTree.Element]:
    """What stays of a node: it, what a group without attributes holds, or nothing."""
    if child.tag == _GROUP:
        return [child] if child.attrib and len(child) else list(child)
    clear = child.get("opacity") == "0" or child.get("display") == "none"
    bare = child.tag == f"{{{_SVG}}}path" and not seen
    return [] if clear or bare else [child]


# The page's script sets the same options from the theme's colours.
LIGHT: dict[str, Any] = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "#3d434a",
        "titleColor": "#3d434a",
        "gridColor": "#e3e6ea",
        "tickColor": "#b4bac2",
        "domainColor": "#b4bac2",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "legend": {"labelColor": "#3d434a", "titleColor": "#3d434a", "labelFontSize": 12},
    "header": {"labelColor": "#3d434a", "labelFontSize": 12},
    "title": {"color": "#1c2024", "fontSize": 14},
    "text": {"fill": "#3d434a", "fontSize": 12},
    "bar": {"stroke": "#ffffff", "strokeWidth": 1},
    # in the page's colour: what keeps a name readable on lines, and squares apart
    "style": {
        "halo": {"stroke": "#ffffff", "strokeWidth": 4, "strokeJoin": "round", "fillOpacity": 0},
        "apart": {"stroke": "#ffffff", "strokeWidth": 1},
    },
}


_INVERTED = {
    "#3d434a": "#c9ced6",
    "#e3e6ea": "#343a42",
    "#b4bac2": "#59616b",
    "#1c2024": "#e8eaed",
    "#ffffff": "#16191d",
}


def _inverted(option: Any) -> Any:
    if isinstance(option, dict):
        return {name: _inverted(value) for name, value in option.items()}
    return _INVERTED.get(option, option)


DARK: dict[str, Any] = _inverted(LIGHT)
