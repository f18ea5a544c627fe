"""Tables as they appear on a page: numbers rounded to be read, a caption, no index.

Charts bring their own tables along (`charts.py`); this is for frames that are the result.
"""

import html
from dataclasses import dataclass
from numbers import Integral, Real

import pandas as pd

_NUMBER = ' class="number"'  # of cells, and of what heads them


@dataclass(frozen=True)
class Table:
    """A frame to be shown; the last value of a notebook cell."""

    frame: pd.DataFrame
    caption: str = ""

    def _texts(self) -> pd.DataFrame:
        return self.frame.map(_text)

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self.caption, self._texts().to_string(index=False)]))

    def _repr_html_(self) -> str:
        texts = self._texts()
        numeric = [
            all(isinstance(value, Real) for value in self.frame[column]) for column in self.frame
        ]
        heads = "".join(
            f'<th scope="col"{_NUMBER if number else ""}>{html.escape(head(column))}</th>'
            for column, number in zip(texts, numeric)
        )
        rows = []
        for row in texts.itertuples(index=False):
            cells = (
                f"<td{_NUMBER if number else ''}>{html.escape(text)}</td>"
                for text, number in zip(row, numeric)
            )
            rows.append(f"<tr>{''.join(cells)}</tr>")
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(rows)
        # The wrapper scrolls on a narrow screen; a focusable region can be scrolled by keyboard.
        return (
            '<div class="result-table" tabindex="0" role="region"'
            f' aria-label="{html.escape(self.caption or "table")}">'
            f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def table(frame: pd.DataFrame | None, caption: str) -> Table | None:
    """Show a frame; nothing when there is none, because its experiment was set aside.

    A column without a single value isn't shown: this release doesn't tell it.
    """
    if frame is None or frame.empty:
        return None
    return Table(frame.dropna(axis="columns", how="all"), caption)


_HEADS = {  # names that PostgreSQL abbreviates, or that lack their unit
    "fpi bytes": "bytes of full-page images",
    "wal fpi": "full-page images",
    "wal records": "WAL records",
    "wal bytes": "bytes of WAL",
    "temp written": "temporary pages written",
    "disk kb": "kB on disk",
    "memory kb": "kB in memory",
    "work mem": "work_mem",
    "max parallel workers": "max_parallel_workers",
    "per gather": "max_parallel_workers_per_gather",
    "tuple bytes": "bytes of an index tuple",
    "density": "% of a leaf filled",
    "fragmentation": "% of leaves out of order",
}


def head(column: object) -> str:
    """What a column is headed with; a head stays as it is."""
    if column in _HEADS.values():
        return str(column)
    words = str(column).replace("_", " ")
    return _HEADS.get(words, words)


def _text(value: object) -> str:
    """Whole numbers in full, commas for thousands as in prose, others to four digits, no None."""
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return ""
    if isinstance(value, bool) or str(type(value)) == "<class 'numpy.bool'>":
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}"
    if isinstance(value, Real):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)
