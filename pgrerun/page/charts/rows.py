"""The rows that a chart is drawn from, made of numbers and of frames of them."""

import math
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, TypeAlias

import pandas as pd

from pgrerun.page.charts.results import WHOSE
from pgrerun.record.statistics import Interval

# A chart's frame, or its parts in the order in which they are drawn: rows, and frames of rows.
Rows: TypeAlias = "pd.DataFrame | Iterable[pd.DataFrame | Mapping[str, Any]]"
ENDS = ["low", "high"]  # of an interval, where there is one
Values: TypeAlias = "Mapping[Any, Interval | float] | pd.Series"


def row(label: str, kind: str, value: Interval | float, **more: Any) -> dict[str, Any]:
    """One row of a chart's frame: an interval becomes value, low and high; `more` are columns."""
    return {"label": label, "kind": kind} | _numbers(value) | more


def rows(values: Values, kind: str, **more: Any) -> list[dict[str, Any]]:
    """Rows of one kind: a value by its label."""
    return [row(label, kind, value, **more) for label, value in values.items()]


def points(values: Values, kind: str, **more: Any) -> list[dict[str, Any]]:
    """Points of a line: a value by its `x`; `more` are columns (`series`, `panel`)."""
    return [{"x": x, "kind": kind} | _numbers(value) | more for x, value in values.items()]


def together(rows: Rows, order: Iterable[str] = ()) -> pd.DataFrame:
    """One frame of rows and frames, as they come, or by their labels in this order.

    An interval that one pair alone leaves open, from 0 to infinity, can't be drawn and is left out.
    """
    frame = _closed(rows if isinstance(rows, pd.DataFrame) else _one_frame(rows))
    place = {label: number for number, label in enumerate(order)}
    if not place:
        return frame
    by_place = frame["label"].map(place).sort_values(kind="stable").index
    return frame.loc[by_place].reset_index(drop=True)


def own(frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The observations that a caption tells of, and words for whose they are.

    This run's, or without any the published one's; those of a slowed disk are among them.
    """
    mine = frame["kind"].isin(["measured", "slowed"])
    if mine.any():
        return WHOSE["measured"], frame[mine]
    return WHOSE["published"], frame[frame["kind"].isin(["published", "published-slowed"])]


def _one_frame(parts: Iterable[pd.DataFrame | Mapping[str, Any]]) -> pd.DataFrame:
    frames: list[pd.DataFrame] = []
    for framed, grouped in groupby(parts, lambda part: isinstance(part, pd.DataFrame)):
        some = list(grouped)
        frames += some if framed else [pd.DataFrame(some)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _closed(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the ends of open intervals, and without their columns where no row has both ends."""
    if not set(ENDS) <= set(frame.columns):
        return frame
    ends = frame[ENDS].astype(float).replace([math.inf, -math.inf], math.nan)
    open_ = ends.isna().any(axis=1)
    return frame.drop(columns=ENDS) if open_.all() else frame.assign(**ends.mask(open_))


def _numbers(value: Interval | float) -> dict[str, float]:
    if isinstance(value, Interval):
        return {"value": value.estimate, "low": value.low, "high": value.high}
    return {"value": value}
