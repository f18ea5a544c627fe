"""Pages of a table, line pointer by line pointer."""

import textwrap

import altair as alt
import pandas as pd

from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import GREY, Figure, Words, figure_of

# By the state of a line pointer, and for a normal one whether its tuple is the current version.
_WHAT = {
    "normal": "current version",
    "old": "replaced version",
    "redirect": "redirect",
    "dead": "dead",
    "unused": "unused",
}
_COLOURS = dict(zip(_WHAT.values(), ("#2F7CC0", "#B5579B", "#128A68", "#C44E52", "#7F858D")))


_PAGE_COLUMNS = {
    "page": "page",
    "line_pointer": "line pointer",
    "what": "what it is",
    "tuple": "tuple",
    "to": "goes on to line pointer",
    "heap_only": "heap-only",
    "entries": "index entries",
}


# what is said of the line pointer under the mouse
_TOLD = [alt.Tooltip(f"{field}:N", title=title) for field, title in _PAGE_COLUMNS.items()]


_PER_ROW = 5  # pages that stand beside each other
_TITLE_WIDTH = 8  # characters above a page: five pages stand side by side on a phone


def heap_pages(frame: pd.DataFrame, words: Words) -> Figure:
    """Pages of a table side by side, line pointer by line pointer: several, or one in many states.

    `frame` has a row per line pointer: `page` (the picture's title, drawn in the order of first
    occurrence), `line_pointer` (from 1), `state` ("normal", "redirect", "dead", "unused") and `to`
    (the line pointer that a redirect or a version's chain goes on to; missing if none), as
    `instruments.pages.heap_page` reads them; `tuple` (a short name), `old` (a later version was
    committed), `heap_only`, and `entries` (index entries that point here). Arrows follow `to`; a
    heap-only tuple has a dashed outline; a triangle points to where index entries point. ValueError
    if a column is missing or a state unknown.
    """
    rows = _page_rows(frame)
    height = float(rows["bottom"].max())
    x = alt.Scale(domain=[-0.08, min(_PER_ROW, rows["page"].nunique())], nice=False)
    y = alt.Scale(domain=[0, height], reverse=True, nice=False)
    layers = [*_cells(rows, x, y), *_texts(x, y), *_arrows(x, y), _entries(x, y)]
    chart = encodings.panels(alt.layer(*layers), rows, 17 * height)
    return figure_of(chart, words, _PAGE_COLUMNS, _pages_in_words(frame))


def _at(field: str, x: alt.Scale) -> alt.X:
    return alt.X(f"{field}:Q", scale=x, axis=None)


def _level(field: str, y: alt.Scale) -> alt.Y:
    return alt.Y(f"{field}:Q", scale=y, axis=None)


def _cells(rows: pd.DataFrame, x: alt.Scale, y: alt.Scale) -> list[alt.Chart]:
    """A box for each line pointer; of a heap-only tuple, dashed."""
    seen = [what for what in _COLOURS if (rows["what"] == what).any()]
    scale = alt.Scale(domain=seen, range=[_COLOURS[what] for what in seen])
    how = {"title": None, "scale": scale, "legend": encodings.legend("top", 5)}
    box = alt.Chart().encode(
        x=_at("left", x),
        x2="right:Q",
        y=_level("top", y),
        y2="bottom:Q",
        tooltip=_TOLD,
        stroke=alt.Stroke("what:N", **how),
        fill=alt.Fill("what:N", **how),
    )
    look = {"fillOpacity": 0.16, "strokeWidth": 1.6}
    return [
        box.transform_filter(f"{heap_only}datum.heap_only").mark_rect(strokeDash=dash, **look)
        for heap_only, dash in (("!", [1, 0]), ("", [4, 2.5]))
    ]


def _texts(x: alt.Scale, y: alt.Scale) -> list[alt.Chart]:
    """The tuples' names in their boxes, and the pages' titles above."""
    base = alt.Chart()
    texts = base.mark_text(align="left", fontSize=11, dx=4).encode(
        x=_at("left", x), y=_level("middle", y), text="shown:N"
    )
    titles = (
        base.transform_filter("datum.title !== null")
        .mark_text(
            align="left",
            baseline="top",
            fontSize=11,
            fontWeight="bold",
            lineBreak="\n",
            lineHeight=13,
        )
        .encode(x=_at("left", x), y=_level("above", y), text="title:N")
    )
    return [texts, titles]


def _arrows(x: alt.Scale, y: alt.Scale) -> list[alt.Chart]:
    """From each version or redirect to what it goes on to, in a lane of its own."""
    onward = alt.Chart().transform_filter("isValid(datum.target)")
    rule = onward.mark_rule(color=GREY, strokeWidth=1.4)
    point = {"shape": "triangle-left", "size": 34, "filled": True, "opacity": 1, "xOffset": 3}
    right, middle, target = _at("right", x), _level("middle", y), _level("target", y)
    return [
        rule.encode(x=right, x2="lane:Q", y=middle),
        rule.encode(x=_at("lane", x), y=middle, y2="target:Q"),
        rule.encode(x=right, x2="lane:Q", y=target),
        onward.mark_point(color=GREY, **point).encode(x=right, y=target),
    ]


def _entries(x: alt.Scale, y: alt.Scale) -> alt.Chart:
    """A triangle where index entries point."""
    pointed = alt.Chart().transform_filter("datum.entries > 0")
    triangle = pointed.mark_point(
        shape="triangle-right", size=34, filled=True, color=GREY, opacity=1
    )
    return triangle.encode(x=_at("pointed", x), y=_level("middle", y), tooltip=_TOLD)


def _page_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with the place of every line pointer: a line is 1 high, a page 1 wide."""
    encodings.require(frame, [*(name for name in _PAGE_COLUMNS if name != "what"), "state", "old"])
    states = [state for state in _WHAT if state != "old"]
    if unknown := set(frame["state"]) - set(states):
        raise ValueError(
            f"unknown state of a line pointer: {', '.join(map(str, unknown))}; known:"
            f" {', '.join(states)}"
        )
    rows = frame.drop(columns=[c for c in frame if c not in {*_PAGE_COLUMNS, "state", "old"}])
    rows["what"] = [
        _WHAT["old" if old and state == "normal" else state]
        for state, old in zip(rows["state"], rows["old"])
    ]
    rows["shown"] = [
        f"{number}  {name}".rstrip() for number, name in zip(rows["line_pointer"], rows["tuple"])
    ]
    titles = list(dict.fromkeys(rows["page"]))
    wrapped = {
        title: textwrap.wrap(title, _TITLE_WIDTH, break_long_words=False) for title in titles
    }
    number = rows["page"].map(titles.index)
    column, line = number % _PER_ROW, number // _PER_ROW
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
    rows["lane"] = (
        rows["right"] + 0.02 + min(0.05, 0.28 / max(lanes.fillna(0).max(), 1)) * lanes
    )  # none reaches the next page
    uppermost = rows["line_pointer"] == rows.groupby("page")["line_pointer"].transform("min")
    rows["title"] = [
        chr(10).join(wrapped[page]) if up else None for page, up in zip(rows["page"], uppermost)
    ]
    rows["above"] = first - 0.8 * rows["page"].map(lambda page: len(wrapped[page]))
    return rows.drop(columns=["state", "old"])


def _pages_in_words(frame: pd.DataFrame) -> str:
    """Every line pointer of every page."""
    sentences = []
    for title, page in frame.groupby("page", sort=False):
        parts = []
        for row in page.itertuples():
            heap_only = " heap-only" if row.heap_only else ""
            what = row.tuple + heap_only if row.state == "normal" else row.state
            parts.append(
                f"{row.line_pointer} {what}" + ("" if pd.isna(row.to) else f" to {row.to}")
            )
        sentences.append(f"{title}: {', '.join(parts)}.")
    return " ".join(sentences)
