"""What the documents printed, and what follows from it without any measurement.

`table` and `cell` read a table as it was printed (`reading.py`), `derived` adds columns that code
computed from printed ones, `recomputed` checks print against print. `claims` takes its printed
effects from here by name, charts and notebooks the tables.

A chapter whose tables imply something has a module of its name here, with `DERIVED` (table name to
a function that returns the table with its computed columns) and `checks()` (a list of `Check`).
The documents are those of `data/documents.csv`.
Each table was typed a second time into `second_entry/`, and a test compares the two cell by cell;
another holds every number against the document where the reader has its text (`text.py`).
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pandas as pd

from pgrerun.errors import RecordError
from pgrerun.record.printed.reading import (
    DATA,
    DOCUMENTS,
    Check,
    Document,
    Source,
    cell,
    cited,
    names,
    printed,
    second_entry,
    source,
    table,
)
from pgrerun.record.printed.text import missing_from_text, sections

__all__ = [
    "DATA",
    "DOCUMENTS",
    "Check",
    "Document",
    "Source",
    "cell",
    "cited",
    "derived",
    "disagreements",
    "missing_from_text",
    "names",
    "printed",
    "recomputed",
    "second_entry",
    "sections",
    "source",
    "table",
]

CHAPTERS = sorted({module.name for module in iter_modules(__path__)} - {"reading", "text"})
"""The chapters that have a module here."""


def _of(chapter: str) -> ModuleType:
    return import_module(f"{__name__}.{chapter}")


def derived(name: str) -> pd.DataFrame:
    """The table with its computed columns, or as printed if it has none.

    Which columns those are, the function of that table in its chapter's module says.
    """
    for chapter in CHAPTERS:
        if name.startswith(f"{chapter}_") and name in _of(chapter).DERIVED:
            frame: pd.DataFrame = _of(chapter).DERIVED[name]()
            return frame
    return table(name)


def recomputed(chapter: str) -> pd.DataFrame:
    """Every figure of a chapter that can be recomputed from other printed figures.

    Columns: where, printed, recomputed (both texts with units), agrees (bool), note.
    """
    if chapter not in CHAPTERS:
        raise RecordError(
            f"Nothing is recomputed for chapter {chapter!r}. Chapters: {', '.join(CHAPTERS)}."
        )
    checks: list[Check] = _of(chapter).checks()
    return pd.DataFrame(checks, columns=list(Check._fields)).astype({"agrees": bool})


def disagreements(chapter: str) -> pd.DataFrame:
    """Where the print disagrees with itself: where, printed, recomputed, note."""
    rows = recomputed(chapter)
    return rows[~rows.agrees].drop(columns="agrees").reset_index(drop=True)
