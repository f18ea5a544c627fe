"""Reading a printed table: one CSV in `data/published/` per table, with its source.

A file starts with comment lines (`# document:`, `# section:`, `# note:`); its first column is a
key of plain names, so that any cell has an address: `tp1_stages.two.tp1`. A cell is empty where
the text prints nothing.
"""

import re
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import pandas as pd

from pgrerun.errors import RecordError

DATA = Path(__file__).resolve().parents[2] / "data" / "published"

DOCUMENTS = {
    "ingres-1981": ("the INGRES memorandum of 1981", "1981-ingres-performance-enhancements.txt"),
    "postgres-1990": ("the POSTGRES report of 1990", "1990-postgres-performance-report.txt"),
    "hot-2007": ("the HOT thread of 2007", "2007-hot-preliminary-results.txt"),
    "postgres92-2012": ("the PostgreSQL 9.2 talk of 2012", "2012-postgresql-9.2-scalability-talk.txt"),
    "explorations-2020": ("the PostgreSQL Explorations of 2020", "2020-postgresql-explorations.txt"),
}
"""Name in a sentence, and file name of the text, by the ledger's `document`."""


@dataclass(frozen=True)
class Source:
    """Where a table was printed: the ledger's name of the document, its section(s), our remarks."""

    document: str
    section: str
    note: str

    def __str__(self) -> str:
        return f"{DOCUMENTS[self.document][0]}, {cited(self.section)}"


def cited(section: str) -> str:
    """Places as the ledger and the tables write them, in words: "3.2.2; VI" is "section 3.2.2 and section VI",
    "msg 4" is "message 4", a talk's "24:44" is "minute 24:44"."""
    return " and ".join(_place(part.strip()) for part in section.split(";"))


def _place(part: str) -> str:
    if re.fullmatch(r"\d+(:\d\d)+", part):
        return f"minute {part}"
    if part.startswith("msg "):
        return part.replace("msg", "message")
    return f"section {part}" if part[0].isdigit() or re.fullmatch("[IVX]+", part) else part


def _path(name: str) -> Path:
    path = DATA / f"{name}.csv"
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        have = ", ".join(names()) or "none"
        raise RecordError(f"There is no published table {name!r} in {DATA}. Tables: {have}.")
    return path


def names(chapter: str = "") -> list[str]:
    """Names of the published tables, of one chapter or of all."""
    prefix = f"{chapter}_" if chapter else ""
    return sorted(p.stem for p in DATA.glob("*.csv") if p.stem.startswith(prefix))


@cache
def source(name: str) -> Source:
    """Where the table was printed. RecordError where the file doesn't say."""
    header = [line[1:].strip() for line in _path(name).read_text("utf-8").splitlines() if line.startswith("#")]
    fields = [line.split(":", 1) for line in header if ":" in line]
    found = lambda key: " ".join(value.strip() for k, value in fields if k == key)
    if found("document") not in DOCUMENTS or not found("section"):
        raise RecordError(
            f"{_path(name)} doesn't name its source. It must start with the lines '# document: NAME' "
            f"(one of {', '.join(DOCUMENTS)}) and '# section: …'."
        )
    return Source(found("document"), found("section"), found("note"))


def _read(path: Path) -> pd.DataFrame:
    """The table as text, keyed by its first column, comment lines left out."""
    lines = path.read_text("utf-8").splitlines()
    body = "\n".join(line for line in lines if not line.startswith("#"))
    # The parser would take a cell too many for an unnamed index and a missing one for an empty cell.
    try:
        frame = pd.read_csv(StringIO(body), dtype=str, keep_default_na=False, index_col=False)
    except ValueError as error:
        raise RecordError(f"{path} is not a readable table: {error}. Restore it from version control.") from None
    frame = frame.set_index(frame.columns[0])
    bad = [key for key in frame.index if not str(key).isidentifier()]
    if bad or not frame.index.is_unique:
        raise RecordError(f"{path}: the first column must hold unique plain names; look at {bad or 'its repeats'}.")
    return frame


def printed(name: str) -> pd.DataFrame:
    """The table as text, every cell as it was typed."""
    return _read(_path(name))


def second_entry(name: str) -> pd.DataFrame:
    """The independently typed transcription of the table, as text."""
    return _read(DATA / "second_entry" / f"{name}.csv")


@cache
def _table(name: str) -> pd.DataFrame:
    frame = _read(_path(name))
    for column in frame:
        filled = frame[column][frame[column] != ""]
        if set(filled) and set(filled) <= {"yes", "no"}:
            frame[column] = frame[column].map({"yes": True, "no": False})
        elif len(filled) and pd.to_numeric(filled, errors="coerce").notna().all() and column != "printed":
            frame[column] = pd.to_numeric(frame[column])  # empty becomes NaN
    return frame


def table(name: str) -> pd.DataFrame:
    """The table as printed, indexed by its key; numbers as float or int, an empty number as NaN.

    `frame.attrs` holds `source` (in words) and `note`. RecordError where there is no such table.
    """
    frame = _table(name).copy()
    frame.attrs = {"source": str(source(name)), "note": source(name).note}
    return frame


def cell(name: str, key: str, column: str) -> float:
    """One printed number. RecordError where the table has no such cell or no number in it."""
    frame = _table(name)
    if key not in frame.index or column not in frame.columns:
        raise RecordError(
            f"Table {name} has no cell {key}.{column}. Rows: {', '.join(frame.index)}; columns: {', '.join(frame.columns)}."
        )
    value = frame.at[key, column]
    if isinstance(value, str) or pd.isna(value):
        raise RecordError(f"Cell {name}.{key}.{column} holds no number: the document doesn't print one.")
    return float(value)
