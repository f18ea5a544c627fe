"""Which plan an optimizer takes over a grid of two selectivities."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from scipy import ndimage

from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import CATEGORIES, Axis, Figure, Words, figure_of


def plan_diagram(frame: pd.DataFrame, words: Words, x_axis: Axis, y_axis: Axis) -> Figure:
    """Which plan an optimizer takes over a grid of two selectivities; a click spells a plan out.

    `frame` has a row per point of the grid: `x` and `y` (from 0 to 1, the same values for all rows
    and columns), `plan` (the plan's tree, one node a line), `title` (its kind in two or three
    words) and `cost`. Neighbours of one plan are drawn as one rectangle up to halfway to the next
    point; both axes are of the square root, since plans change where few tuples qualify. Plans are
    lettered by the area that they cover; beyond the number of colours the smallest share the last.
    ValueError if a column is missing or the grid has holes.
    """
    rows, plans = _plan_rows(frame)
    names = {"x": x_axis.quantity, "y": y_axis.quantity}
    spelt = 15 * int(max(plans["plan"].str.count("\n").max() + 4, 5))  # pixels above the grid
    clicked = alt.selection_point(
        name="region", fields=["letter"], on="click", clear="dblclick", empty=False
    )
    cells = _regions(names, list(dict.fromkeys(plans["legend"])), spelt)
    layers = alt.layer(cells.add_params(clicked), *_written(clicked))
    chart = encodings.panels(layers, rows, spelt + _EDGE)
    return figure_of(chart, words, _columns(names), _plans_in_words(plans))


_EDGE, _ACROSS = 300, 580  # pixels of the grid's height, and of its width on a wide page
_PIXELS, _LETTER = 4, 14  # of what its regions are measured in, and of a letter with some room
_FURTHER, _OTHERS = "+", "+: others"  # plans for which there is no letter, and their legend
_TICKS = [0, 0.01, 0.05, 0.1, 0.2, 0.5, 1]


def _columns(names: dict[str, str]) -> dict[str, str]:
    """Fields of a region and their headings, in the table and the tooltip."""
    return {
        "letter": "plan",
        "title": "kind",
        "left": f"{names['x']}, from",
        "right": "to",
        "bottom": f"{names['y']}, from",
        "top": "to",
        "least_cost": "cost from",
        "most_cost": "cost to",
    }


def _axis(field: str, quantity: str, extent: list[float] | None) -> dict[str, Any]:
    more = {"range": extent} if extent else {}
    scale = alt.Scale(type="sqrt", domain=[0, 1], nice=False, **more)
    ticks = alt.Axis(values=_TICKS, grid=False, format="~r")
    kind = {"field": field, "type": "quantitative"}
    return kind | {"scale": scale, "axis": ticks, "title": quantity}


def _regions(names: dict[str, str], legend: list[str], above: int) -> alt.Chart:
    """The rectangles, coloured by plan, `above` pixels below the picture's edge."""
    colours = [CATEGORIES[n % len(CATEGORIES)] for n in range(len(legend))]
    scale = alt.Scale(domain=legend, range=colours)
    shown = {"field": "legend", "type": "nominal", "title": None, "sort": legend, "scale": scale}
    shown["legend"] = encodings.legend("bottom", 2)
    tooltip = []
    for field, title in _columns(names).items():
        places = {"format": ".0f"} if "cost" in field else {"format": ".3f"}
        words = field in ("letter", "title")
        kind, more = ("N", {}) if words else ("Q", places)
        tooltip.append(alt.Tooltip(f"{field}:{kind}", title=title, **more))
    # nothing clicked dims nothing
    dimmed = {"condition": {"param": "region", "empty": True, "value": 0.9}, "value": 0.25}
    # of a page with hundreds of regions a fifth was this, spelt out for each
    spelt = f"datum.letter == '{_FURTHER}' ? '{_OTHERS}' : datum.letter + ': ' + datum.title"
    cells = alt.Chart().transform_calculate(legend=spelt).mark_rect(strokeWidth=0.4)
    return cells.encode(
        x=alt.X(**_axis("left", names["x"], None)),
        x2="right:Q",
        y=alt.Y(**_axis("bottom", names["y"], [above + _EDGE, above])),
        y2="top:Q",
        color=alt.Color(**shown),
        stroke=alt.Stroke(**shown),
        tooltip=tooltip,
        opacity=dimmed,
    )


def _written(clicked: alt.Parameter) -> list[alt.Chart]:
    """The plans' letters on their regions; above the grid the plan that was clicked, or the first.

    The selection's store is asked by itself, since a filter by a parameter shows all or none
    before the first click.
    """
    base = alt.Chart()
    letters = base.transform_filter("datum.named").mark_text(
        fontWeight="bold", fill="white", fontSize=13
    )
    place = {"align": "left", "baseline": "top"}
    hint = base.transform_filter("datum.first").mark_text(fontStyle="italic", **place)
    store = f"{clicked.name}_store"
    chosen = f"length(data('{store}')) ? vlSelectionTest('{store}', datum) : datum.largest"
    tree = base.transform_filter("datum.first_of_plan").transform_filter(chosen)
    tree = tree.mark_text(lineBreak="\n", lineHeight=15, **place)
    asked = alt.value("A click on a region shows its plan here:")
    return [
        letters.encode(x=alt.X("middle_x:Q"), y=alt.Y("middle_y:Q"), text="letter:N"),
        hint.encode(text=asked, x=alt.value(0), y=alt.value(0)),
        tree.encode(text="spelt:N", x=alt.value(0), y=alt.value(18)),
    ]


def _plan_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rectangles, and the plans with letter, legend and share, largest first."""
    encodings.require(frame, ["x", "y", "plan", "title", "cost"])
    at = {axis: sorted(frame[axis].unique()) for axis in ("x", "y")}
    whole = len(at["x"]) * len(at["y"])
    if len(frame) != whole or frame.duplicated(["x", "y"]).any():
        raise ValueError(
            f"a plan diagram needs every point of its grid once: {len(at['x'])} by {len(at['y'])}"
            f" points, {len(frame)} rows"
        )
    plans = _lettered(frame)
    cells = _stacked(_rectangles(frame, at)).join(plans[["title", "letter"]], on="plan")
    cells["first"], cells["first_of_plan"] = cells.index == 0, ~cells.duplicated("letter")
    cells["largest"] = cells["letter"] == plans["letter"].iloc[0]
    middles = _middles(cells)
    cells["named"] = cells["first_of_plan"] & cells["letter"].isin(list(middles))
    for n, axis in enumerate(("middle_x", "middle_y")):
        places = cells["letter"].map({letter: middle[n] for letter, middle in middles.items()})
        cells[axis] = places.where(cells["named"])
    cells["spelt"] = [
        f"{row.letter}: {row.plan}" if row.first_of_plan else "" for row in cells.itertuples()
    ]
    return cells.drop(columns="plan"), plans.reset_index()


def _middles(cells: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """By its letter, where in the regions of a plan there is most room for that letter.

    Plans whose regions are narrower than a letter are left out.
    """
    found = {}
    for letter, own in cells.groupby("letter"):
        inside = np.zeros((_EDGE // _PIXELS, _ACROSS // _PIXELS), dtype=bool)
        for cell in own.itertuples():
            columns, rows = (
                slice(*(round(end**0.5 * size) for end in ends))
                for ends, size in (
                    ((cell.left, cell.right), inside.shape[1]),
                    ((cell.bottom, cell.top), inside.shape[0]),
                )
            )
            inside[rows, columns] = True
        # how many squares each one is away from what isn't inside, the edge included; 0 there
        depth = ndimage.distance_transform_cdt(np.pad(inside, 1), "chessboard")[1:-1, 1:-1]
        if depth.max() * 2 * _PIXELS < _LETTER:
            continue
        deepest = np.argwhere(depth == depth.max())
        far = np.abs(deepest - np.median(deepest, axis=0)).sum(axis=1)
        row, column = deepest[far.argmin()]
        found[str(letter)] = (
            float(((column + 0.5) / inside.shape[1]) ** 2),
            float(((row + 0.5) / inside.shape[0]) ** 2),
        )
    return found


def _lettered(frame: pd.DataFrame) -> pd.DataFrame:
    """The plans by the area that they cover, indexed by their tree."""
    plans = frame.groupby("plan", sort=False).agg(title=("title", "first"), points=("x", "size"))
    plans = plans.sort_values("points", ascending=False, kind="stable")
    plans["letter"] = [
        chr(ord("A") + n) if n < len(CATEGORIES) - 1 or len(plans) == len(CATEGORIES) else _FURTHER
        for n in range(len(plans))
    ]
    plans["share"] = plans["points"] / len(frame)
    plans["legend"] = [
        f"{plan.letter}: {plan.title}" if plan.letter != _FURTHER else _OTHERS
        for plan in plans.itertuples()
    ]
    return plans


def _rectangles(frame: pd.DataFrame, at: dict[str, list[float]]) -> pd.DataFrame:
    """Neighbours of one plan in a line of the grid as one rectangle."""
    edges = {
        axis: [0.0, *((a + b) / 2 for a, b in zip(values, values[1:])), 1.0]
        for axis, values in at.items()
    }
    rows = []
    for (y, _), line in (
        frame.sort_values(["y", "x"])
        .assign(run=lambda f: (f["plan"] != f["plan"].shift()).cumsum())
        .groupby(["y", "run"], sort=False)
    ):
        first, last, up = (
            at["x"].index(line["x"].iloc[0]),
            at["x"].index(line["x"].iloc[-1]),
            at["y"].index(y),
        )
        rows.append(
            {
                "plan": line["plan"].iloc[0],
                "left": edges["x"][first],
                "right": edges["x"][last + 1],
                "bottom": edges["y"][up],
                "top": edges["y"][up + 1],
            }
            | {"least_cost": line["cost"].min(), "most_cost": line["cost"].max()}
        )
    return pd.DataFrame(rows)


def _stacked(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of the same plan, left and right edge that lie upon another, as one."""
    cells = cells.sort_values(["plan", "left", "right", "bottom"])
    same = (cells[["plan", "left", "right"]] == cells[["plan", "left", "right"]].shift()).all(
        axis=1
    ) & (cells["bottom"] == cells["top"].shift())
    merged = cells.groupby((~same).cumsum()).agg(
        {
            "plan": "first",
            "left": "first",
            "right": "first",
            "bottom": "first",
            "top": "last",
            "least_cost": "min",
            "most_cost": "max",
        }
    )
    return merged.reset_index(drop=True)


def _plans_in_words(plans: pd.DataFrame) -> str:
    shares = [f"{plan.legend} {100 * plan.share:.3g} %" for plan in plans.itertuples()]
    return "Share of the grid that each plan covers: " + ", ".join(shares) + "."
