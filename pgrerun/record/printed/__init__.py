"""What the documents printed, and what follows from it without any measurement.

`table` and `cell` read a table as it was printed (`reading.py`), `derived` adds columns that code
computed from printed ones, `recomputed` checks print against print. `claims` takes its printed
effects from here by name, charts and notebooks the tables.

A chapter whose tables imply something has a module of its name here, with `DERIVED` (table name to
a function that returns the table with its computed columns) and `checks()` (rows of `recomputed`).
Each table was typed a second time into `second_entry/`, and a test compares the two cell by cell;
another holds every number against the document where the reader has its text (`text.py`).
"""

from importlib import import_module
from pkgutil import iter_modules

import pandas as pd

from pgrerun.errors import RecordError
from pgrerun.published.reading import DATA, DOCUMENTS, Source, cell, cited, names, printed, second_entry, source, table
from pgrerun.published.text import missing_from_text, sections

__all__ = [
    "DATA", "DOCUMENTS", "Source", "cell", "cited", "derived", "disagreements", "missing_from_text", "names",
    "printed", "recomputed", "second_entry", "sections", "source", "table",
]  # fmt: skip

CHAPTERS = sorted({module.name for module in iter_modules(__path__)} - {"reading", "text"})
"""The chapters that have a module here."""


def _of(chapter: str):
    return import_module(f"{__name__}.{chapter}")


def derived(name: str) -> pd.DataFrame:
    """The table with its computed columns (see the function of that table in its chapter's module), or as printed."""
    owner = next((chapter for chapter in CHAPTERS if name.startswith(f"{chapter}_")), None)
    compute = _of(owner).DERIVED.get(name, lambda: table(name)) if owner else lambda: table(name)
    return compute()


def recomputed(chapter: str) -> pd.DataFrame:
    """Every figure of a chapter that can be recomputed from other printed figures.

    Columns: where, printed, recomputed (both texts with units), agrees (bool), note.
    """
    if chapter not in CHAPTERS:
        raise RecordError(f"Nothing is recomputed for chapter {chapter!r}. Chapters: {', '.join(CHAPTERS)}.")
    return pd.DataFrame(_of(chapter).checks(), columns=["where", "printed", "recomputed", "agrees", "note"]).astype({"agrees": bool})


def disagreements(chapter: str) -> pd.DataFrame:
    """Where the print disagrees with itself: where, printed, recomputed, note."""
    rows = recomputed(chapter)
    return rows[~rows.agrees].drop(columns="agrees").reset_index(drop=True)
