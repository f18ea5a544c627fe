"""Reading a printed table: one CSV in `data/printed/` per table, with its source.

A file starts with comment lines (`# document:`, `# section:`, `# note:`); its first column is a
key of plain names, so that any cell has an address: `tp1_stages.two.tp1`. A cell is empty where
the text prints nothing.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pgrerun.errors import RecordError

DATA = Path(__file__).resolve().parents[3] / "data" / "printed"


class Document(NamedTuple):
    """One of the documents that the book is about, a line of `data/documents.csv`.

    `name` is what sentences call it ("the HOT thread of 2007"), `file` the name of its text's file,
    `address` where the public finds it; these two are empty where there is none.
    """

    name: str
    file: str
    title: str
    authors: str
    year: int
    address: str


def documents(path: Path) -> dict[str, Document]:
    """The documents by the ledger's name of each.

    RecordError naming file and line where damaged.
    """
    found: dict[str, Document] = {}
    with open(path, newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines, strict=True)
        if rows.fieldnames != ["id", *Document._fields]:
            raise RecordError(f"{path}: the columns must be id, {', '.join(Document._fields)}.")
        for row in rows:
            id, year = row.pop("id"), row.pop("year")
            texts = [value for key, value in row.items() if key not in ("address", "file")]
            whole = set(row) == {*Document._fields} - {"year"} and None not in row.values()
            dated = re.fullmatch(r"\d{4}", year or "")
            if not id or id in found or not whole or not all(texts) or not dated:
                raise RecordError(
                    f"{path}, line {rows.line_num}: a document needs an id of its own, a year of"
                    " four digits, and all else but file and address."
                )
            found[id] = Document(year=int(year), **row)
    return found


DOCUMENTS = documents(DATA.parent / "documents.csv")


class Check(NamedTuple):
    """A figure of the print beside what other printed figures make of it.

    `where` says which figure; `printed` and `recomputed` are texts with units.
    """

    where: str
    printed: str
    recomputed: str
    agrees: bool
    note: str


@dataclass(frozen=True)
class Source:
    """Where a table was printed: the ledger's name of the document, its section(s), our remarks."""

    document: str
    section: str
    note: str

    def __str__(self) -> str:
        return f"{DOCUMENTS[self.document].name}, {cited(self.section)}"


def cited(section: str) -> str:
    """Places as the ledger and the tables write them, in words.

    "3.2.2; VI" is "section 3.2.2 and section VI", "msg 4" is "message 4", a talk's "24:44" is
    "minute 24:44".
    """
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
        raise RecordError(f"There is no printed table {name!r} in {DATA}. Tables: {have}.")
    return path


def names(chapter: str = "") -> list[str]:
    """Names of the printed tables, of one chapter or of all."""
    prefix = f"{chapter}_" if chapter else ""
    return sorted(p.stem for p in DATA.glob("*.csv") if p.stem.startswith(prefix))


@cache
def source(name: str) -> Source:
    """Where the table was printed. RecordError where the file doesn't say."""
    header = [
        line[1:].strip()
        for line in _path(name).read_text("utf-8").splitlines()
        if line.startswith("#")
    ]
    fields = [line.split(":", 1) for line in header if ":" in line]
    found = {"document": "", "section": "", "note": ""}
    for key, value in fields:
        found[key] = f"{found.get(key, '')} {value.strip()}".strip()
    if found["document"] not in DOCUMENTS or not found["section"]:
        raise RecordError(
            f"{_path(name)} doesn't name its source. It must start with the lines '# document:"
            f" NAME' (one of {', '.join(DOCUMENTS)}) and '# section: …'."
        )
    return Source(found["document"], found["section"], found["note"])


def _read(path: Path) -> pd.DataFrame:
    """The table as text, keyed by its first column, comment lines left out."""
    lines = path.read_text("utf-8").splitlines()
    body = "\n".join(line for line in lines if not line.startswith("#"))
    # The parser would take a cell too many for an unnamed index, a missing one for an empty cell.
    try:
        frame = pd.read_csv(StringIO(body), dtype=str, keep_default_na=False, index_col=False)
    except ValueError as error:
        raise RecordError(
            f"{path} is not a readable table: {error}. Restore it from version control."
        ) from None
    frame = frame.set_index(frame.columns[0])
    bad = [key for key in frame.index if not str(key).isidentifier()]
    if bad or not frame.index.is_unique:
        raise RecordError(
            f"{path}: the first column must hold unique plain names; look at"
            f" {bad or 'its repeats'}."
        )
    return frame


def printed(name: str) -> pd.DataFrame:
    """The table as text, every cell as it was typed."""
    return _read(_path(name))


def second_entry(name: str) -> pd.DataFrame:
    """The independently typed transcription of the table, as text."""
    return _read(DATA / "second_entry" / f"{name}.csv")


@cache
def read_table(name: str) -> pd.DataFrame:
    frame = _read(_path(name))
    for column in frame:
        filled = frame[column][frame[column] != ""]
        if set(filled) and set(filled) <= {"yes", "no"}:
            frame[column] = frame[column].map({"yes": True, "no": False})
        elif (
            len(filled)
            and pd.to_numeric(filled, errors="coerce").notna().all()
            and column != "printed"
        ):
            frame[column] = pd.to_numeric(frame[column])  # empty becomes NaN
    return frame


def table(name: str) -> pd.DataFrame:
    """The table as printed, indexed by its key; numbers as float or int, an empty number as NaN.

    `frame.attrs` holds `source` (in words) and `note`. RecordError where there is no such table.
    """
    frame = read_table(name).copy()
    frame.attrs = {"source": str(source(name)), "note": source(name).note}
    return frame


def cell(name: str, key: str, column: str) -> float:
    """One printed number. RecordError where the table has no such cell or no number in it."""
    frame = read_table(name)
    if key not in frame.index or column not in frame.columns:
        raise RecordError(
            f"Table {name} has no cell {key}.{column}. Rows: {', '.join(frame.index)}; columns:"
            f" {', '.join(frame.columns)}."
        )
    value = frame.at[key, column]
    if isinstance(value, str) or pd.isna(value):
        raise RecordError(
            f"Cell {name}.{key}.{column} holds no number: the document doesn't print one."
        )
    return float(value)
