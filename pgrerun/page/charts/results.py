"""What a chart's caption says first: the result, with its numbers."""

import re
from dataclasses import replace

import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.charts.figure import Axis, Words

# whose numbers are told, if it has any: the reader's own before others
WHOSE = {
    "measured": "In this run",
    "slowed": "In this run, on a slowed disk",
    "published": "In the published run",
    "published-slowed": "In the published run, on a slowed disk",
    "simulated": "In the simulation",
    "printed": "As printed",
}
_MOST = 3  # panels, or lines, of which each is told; of more only the one that varies most
_BEYOND = 1.1  # times what a line has reached, from which on it is said to turn
_TURNS = 2


def told(words: Words, frame: pd.DataFrame, axis: Axis, x_axis: Axis | None = None) -> Words:
    """The words, their caption beginning with the result."""
    if not words.caption.strip():
        return words  # refused as it is
    found = words.result(frame) if words.result else _found(frame, axis, x_axis)
    return replace(words, caption=f"{found} {words.caption}".strip())


def _found(frame: pd.DataFrame, axis: Axis, x_axis: Axis | None) -> str:
    """A sentence in the past tense, whose verbs go with one and with many."""
    kind = next((kind for kind in WHOSE if (frame["kind"] == kind).any()), "")
    # parts of a chart may come with the same labels in their indexes
    rows = frame[(frame["kind"] == kind) & frame["value"].notna()].reset_index(drop=True)
    if rows.empty:
        return ""
    by = "panel" if "panel" in rows and rows["panel"].nunique() > 1 else None
    groups = list(rows.groupby(by, sort=False)) if by else [("", rows)]
    among = ""
    if len(groups) > _MOST:
        among = f", the panel of {len(groups)} that varies most,"
        groups = [max(groups, key=lambda group: _spread(group[1], axis))]
    tell = _along if x_axis else _between
    kept = [(panel, group, one) for panel, group in groups if (one := tell(group, axis))]
    said, places = [], []
    for (panel, group, _), one in zip(kept, _elided([one for *_, one in kept])):
        heading = f"in “{panel}”" if axis.quantity else str(panel)
        said.append(f"{heading}{among} {one}" if panel else one)
        places.append(_place(group, x_axis) if x_axis else "")
    if len(set(places)) == 1:  # what all panels say of the horizontal axis is said once
        places = [*("" for _ in places[1:]), places[-1]]
    what = f"{axis.quantity}{',' if ',' in axis.quantity else ''} " if axis.quantity else ""
    parts = "; ".join(one + place for one, place in zip(said, places))
    return f"{WHOSE[kind]}, {what}{parts}." if said else ""


def _spread(rows: pd.DataFrame, axis: Axis) -> float:
    """How far numbers lie apart, as a share where others have another unit."""
    least, most = rows["value"].min(), rows["value"].max()
    return (most - least) / (1 if axis.quantity else max(abs(least), abs(most)) or 1)


def _between(rows: pd.DataFrame, axis: Axis) -> str:
    """The least and the greatest number, and of what they are."""
    least, most = rows.loc[rows["value"].idxmin()], rows.loc[rows["value"].idxmax()]
    unit = f" {axis.unit}" if axis.unit else ""
    low, high = (narrate.number(end["value"]) for end in (least, most))
    if len(rows) == 1:
        # pages, not ms
        one = re.sub(r"(?<=\w{3})s$", "", unit) if low == "1" else unit
        return f"came to {low}{one}"
    if low == high:
        return ""
    ends = (least["label"], low), (most["label"], high)
    first, last = (f"{value}{unit} {_aside(label)}" for label, value in ends)
    return f"ranged from {first} to {last}"


def _elided(parts: list[str]) -> list[str]:
    """Each part without its verb, which is its first word, where the one before has the same."""
    verbs = [part.split(" ")[0] for part in parts]
    return [
        part.removeprefix(f"{verb} ") if verb == before else part
        for part, verb, before in zip(parts, verbs, ["", *verbs])
    ]


def _aside(name: str) -> str:
    """In parentheses what may have its own."""
    return f"({str(name).replace(' (', ', ').replace(')', '')})"


def _along(rows: pd.DataFrame, axis: Axis) -> str:
    """Where each line begins and ends."""
    series = rows.groupby("series", sort=False) if "series" in rows else [("", rows)]
    lines = [(str(name), line.sort_values("x")) for name, line in series]
    among = ""
    if len(lines) > _MOST:
        among = f", the line of {len(lines)} that changes most"
        lines = [max(lines, key=lambda line: _spread(line[1], axis))]
    unit = f" {axis.unit}" if axis.unit else ""
    parts = []
    for name, line in lines:
        first, last = (narrate.number(line["value"].iloc[end]) for end in (0, -1))
        way = f"stayed at {first}{unit}" if first == last else f"went from {first} to {last}{unit}"
        if turns := _turns(line):
            begins = [f" from {first}", *("" for _ in turns[1:])]
            ways = [
                f"{'rose' if rose else 'fell'}{begin} to {there}"
                for begin, (rose, there) in zip(begins, turns)
            ]
            back = "fell" if turns[-1][0] else "rose"
            way = ", ".join([*ways, f"and {back} to {last}{unit}"])
        parts.append(f"{way} {_aside(f'{name}{among}')}" if name else way)
    return narrate.listed(_elided(parts))


def _place(rows: pd.DataFrame, x_axis: Axis) -> str:
    """Between which ends of the horizontal axis the lines lie."""
    low, high = (narrate.number(float(x)) for x in (rows["x"].min(), rows["x"].max()))
    counted = not x_axis.unit and x_axis.quantity.split(" ")[0].endswith("s")  # clients, pairs
    if counted:
        return f", between {low} and {high} {x_axis.quantity}"
    what = f"“{x_axis.quantity}”" if "," in x_axis.quantity else x_axis.quantity
    return f", with {what} between {low} and {high} {x_axis.unit}".rstrip()


def _turns(line: pd.DataFrame) -> list[tuple[bool, str]]:
    """Where a line turns, at most twice: if it rises until there, and the number with its place.

    Turns by less than `_BEYOND` are none; of more than two the smaller ones are left out, too.
    """
    points = list(zip(line["x"], line["value"]))
    if line["value"].min() <= 0:
        return []
    beyond, ends = _BEYOND, points
    while len(ends := _legs(ends, beyond)) > _TURNS + 2:
        beyond *= _BEYOND
    return [
        (y > before, f"{narrate.number(y)} at {narrate.number(float(x))}")
        for (_, before), (x, y) in zip(ends, ends[1:-1])
    ]


def _legs(points: list[tuple[float, float]], beyond: float) -> list[tuple[float, float]]:
    """The first point, and each at which a rise or a fall of more than `beyond` times ends."""
    kept = points[:1]
    for x, y in points[1:]:
        last = kept[-1][1]
        if len(kept) > 1 and (y > last) == (last > kept[-2][1]):
            kept[-1] = (x, y)
        elif max(y / last, last / y) > beyond:
            kept.append((x, y))
    return kept
