"""What a chart's caption says first: the result, with its numbers."""

from dataclasses import replace

import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.charts.figure import Axis, Words

# whose numbers are told, if it has any: the reader's own before others
_TOLD = {
    "measured": "In this run",
    "slowed": "In this run, on a slowed disk",
    "published": "In the published run",
    "published-slowed": "In the published run, on a slowed disk",
    "simulated": "In the simulation",
    "printed": "As printed",
}
_MOST = 3  # panels, or lines, of which each is told; of more only the one that varies most
_FROM_TO = ", between "  # which ends of the horizontal axis
_BEYOND = 1.1  # times an end, from which on a line is said to rise or fall farther than its ends


def told(words: Words, frame: pd.DataFrame, axis: Axis, x_axis: Axis | None = None) -> Words:
    """The words, their caption beginning with the result."""
    if not words.caption.strip():
        return words  # refused as it is
    found = words.result(frame) if words.result else _found(frame, axis, x_axis)
    return replace(words, caption=f"{found} {words.caption}".strip())


def _found(frame: pd.DataFrame, axis: Axis, x_axis: Axis | None) -> str:
    kind = next((kind for kind in _TOLD if (frame["kind"] == kind).any()), "")
    # parts of a chart may come with the same labels in their indexes
    rows = frame[(frame["kind"] == kind) & frame["value"].notna()].reset_index(drop=True)
    if rows.empty:
        return ""
    by = "panel" if "panel" in rows and rows["panel"].nunique() > 1 else None
    groups = list(rows.groupby(by, sort=False)) if by else [("", rows)]
    among = ""
    if len(groups) > _MOST:
        among = f"farthest apart of {len(groups)} in "
        name, widest = max(groups, key=lambda group: _spread(group[1], axis))
        groups = [(f"“{name}”,", widest)]
    tell = _along if x_axis else _between
    said = [
        f"{panel} {one}".strip() for panel, group in groups if (one := tell(group, axis, x_axis))
    ]
    what = f", {axis.quantity}" if axis.quantity else ""
    return f"{_TOLD[kind]}{what}: {among}{'; '.join(_once(said))}." if said else ""


def _spread(rows: pd.DataFrame, axis: Axis) -> float:
    """How far numbers lie apart, as a share where others have another unit."""
    least, most = rows["value"].min(), rows["value"].max()
    return (most - least) / (1 if axis.quantity else max(abs(least), abs(most)) or 1)


def _once(said: list[str]) -> list[str]:
    """The parts, with what all of them say of the horizontal axis said by the last alone."""
    places = {one.rpartition(_FROM_TO)[2] for one in said if _FROM_TO in one}
    if len(places) > 1 or not all(_FROM_TO in one for one in said):
        return said
    return [*(one.rpartition(_FROM_TO)[0] for one in said[:-1]), said[-1]]


def _between(rows: pd.DataFrame, axis: Axis, _: Axis | None) -> str:
    """The least and the greatest number, and of what they are."""
    least, most = rows.loc[rows["value"].idxmin()], rows.loc[rows["value"].idxmax()]
    unit = f" {axis.unit}" if axis.unit else ""
    low, high = (narrate.number(end["value"]) for end in (least, most))
    if len(rows) == 1:
        return f"{low}{unit}"
    if low == high:
        return ""
    return f"from {low}{unit} ({least['label']}) to {high}{unit} ({most['label']})"


def _along(rows: pd.DataFrame, axis: Axis, x_axis: Axis | None) -> str:
    """Where each line begins and ends."""
    series = rows.groupby("series", sort=False) if "series" in rows else [("", rows)]
    lines = [(str(name), line.sort_values("x")) for name, line in series]
    if x_axis is None:
        return ""
    among = ""
    if len(lines) > _MOST:
        among = f", which changes most of {len(lines)}"
        lines = [max(lines, key=lambda line: _spread(line[1], axis))]
    unit = f" {axis.unit}" if axis.unit else ""
    parts = []
    for name, line in lines:
        first, last = (narrate.number(line["value"].iloc[end]) for end in (0, -1))
        whose = f" ({name}{among})" if name else ""
        parts.append(f"from {first}{unit}{_turn(line, unit)} to {last}{unit}{whose}")
    ends = [narrate.number(float(x)) for x in (rows["x"].min(), rows["x"].max())]
    of = x_axis.unit or x_axis.quantity
    of = f"({of})" if "," in of else of
    return f"{', '.join(parts)}{_FROM_TO}{' and '.join(ends)} {of}"


def _turn(line: pd.DataFrame, unit: str) -> str:
    """Where a line goes well beyond both of its ends, which alone would hide what it does."""
    ends = line["value"].iloc[[0, -1]]
    most, least = (line.loc[line["value"].agg(end)] for end in ("idxmax", "idxmin"))
    if ends.min() > 0 and most["value"] > _BEYOND * ends.max():
        far = most
    elif least["value"] > 0 and least["value"] * _BEYOND < ends.min():
        far = least
    else:
        return ""
    return f" by way of {narrate.number(far['value'])}{unit} at {narrate.number(float(far['x']))}"
