"""What calls what, each frame as wide as its share."""

from collections.abc import Iterable

import altair as alt
import pandas as pd

from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import CATEGORIES, Axis, Figure, Words, figure_of

_FILL = 0.42  # of a frame, so that the text on it can be read in both themes


def flame(frame: pd.DataFrame, words: Words, axis: Axis, groups: Iterable[str] = ()) -> Figure:
    """A flame graph: what calls what, each frame as wide as its share; a click looks into a frame.

    `frame` has a row per stack: `stack` (function names from the outermost on, joined by ";"),
    `value` (its own cost) and `group` (a category, drawn as the colour of the stack's last
    function). Frames are drawn top down, callees in the order of their cost; a frame is as wide as
    itself and all it calls. A second click, or one beside the frames, shows everything again.
    Graphs that are given the same `groups` draw them in the same colours.
    ValueError if a column is missing.
    """
    quantity = axis.quantity
    encodings.require(frame, ["stack", "value", "group"])
    rows = _flame_rows(frame)
    known = dict.fromkeys([*groups, *rows.sort_values("share", ascending=False)["group"]])
    colours = dict(zip(known, [*CATEGORIES, *["#B4BAC2"] * len(known)]))
    drawn = [group for group in known if (rows["group"] == group).any()]
    shares = alt.Scale(domain=drawn, range=[colours[group] for group in drawn])
    # as pale as the frames, or nobody finds them by it
    legend = encodings.legend("bottom", 3)
    legend["symbolOpacity"], legend["symbolStrokeWidth"] = _FILL, 0
    colour = alt.Color("group:N", title=None, scale=shares, legend=legend)
    layers = _frames(colour, f"% {quantity}")
    deep = int(rows["depth"].max() + 1)
    height = encodings.fitting(rows, 18 * deep, 16 * deep, words.caption)
    chart = encodings.panels(alt.layer(*layers), rows, height)
    columns = {"depth": "depth", "function": "function", "group": "part"}
    columns |= {"share": f"% {quantity}", "own": "% its own"}
    return figure_of(chart, words, columns, _flame_shares(rows))


def _frames(colour: alt.Color, measure: str) -> list[alt.Chart]:
    """The frames, which a click makes fill the width, and the names in them.

    By expressions and not by a scale's domain: a frame that is clicked must fill the width at any
    size of the page.
    """
    low, high = "(look.start ? look.start[0] : 0)", "(look.end ? look.end[0] : 100)"
    look = alt.selection_point(
        name="look", fields=["start", "end"], on="click", clear="dblclick", empty=True
    )
    left = f"(max(datum.start, {low}) - {low}) / ({high} - {low})"
    right = f"(min(datum.end, {high}) - {low}) / ({high} - {low})"
    base = (
        alt.Chart()
        .transform_filter(f"datum.end > {low} + 1e-6 && datum.start < {high} - 1e-6")
        .transform_calculate(left=left, right=right)
        .transform_calculate(
            shown=(
                "(datum.right - datum.left) * width > 30 ? truncate(datum.function,"
                " floor((datum.right - datum.left) * width / 6.6)) : ''"
            )
        )
    )
    x = alt.X("left:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    y = alt.Y("depth:O", axis=None, scale=alt.Scale(paddingInner=0.06))
    tooltip = [
        alt.Tooltip("function:N"),
        alt.Tooltip("group:N", title="part"),
        alt.Tooltip("share:Q", title=measure, format=".3~g"),
        alt.Tooltip("own:Q", title="% its own", format=".3~g"),
    ]
    frames = (
        base.mark_rect(fillOpacity=_FILL, stroke=None, cursor="pointer")
        .encode(x=x, x2="right:Q", y=y, color=colour, tooltip=tooltip)
        .add_params(look)
    )
    texts = base.mark_text(align="left", baseline="middle", dx=3, fontSize=11).encode(
        x=x, y=y, text="shown:N"
    )
    return [frames, texts]


def _flame_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per frame: depth, function, group, start, end, share, own.

    Start and end are in percent; callees lie side by side below their caller.
    """
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
        rows.append(
            (
                len(names) - 1,
                names[-1],
                group.get(names[-1], ""),
                start,
                start + width,
                width,
                100 * own.get(names, 0.0) / total,
            )
        )
    return pd.DataFrame(
        rows, columns=["depth", "function", "group", "start", "end", "share", "own"]
    )


def _flame_shares(rows: pd.DataFrame) -> str:
    own = rows.groupby("group")["own"].sum().sort_values(ascending=False)
    return "Share of each part: " + ", ".join(f"{part} {x:.3g} %" for part, x in own.items()) + "."
