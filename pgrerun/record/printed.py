"""What the documents printed, and what follows from it without any measurement.

A printed table is a CSV in `data/printed/`, with its source: it starts with comment lines
(`# document:`, `# section:`, `# note:`); its first column is a key of plain names, so that any cell
has an address: `tp1_stages.two.tp1`. A cell is empty where the text prints nothing. The documents
are those of `data/documents.csv`. Each table was typed a second time into `second_entry/`, and a
test compares the two cell by cell; another holds every number against the document's text.

`table` and `cell` read the print. `printed.sql` derives columns and macros from it, in DuckDB:
`derived`, `query` and `value` ask for them. `recomputed` checks print against print, by
`data/printed/checks.csv`. `load` gives all of it to another database.
"""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from pgrerun.errors import RecordError

DATA = Path(__file__).resolve().parents[2] / "data" / "printed"
CHECKS = DATA / "checks.csv"
_DERIVED = Path(__file__).with_suffix(".sql")
_TEXTS = ("place", "printed", "recomputed", "note")
_COLUMNS = ["where", "printed", "recomputed", "agrees", "note", "rule"]
_TYPES = {"bool": "boolean", "object": "boolean", "int64": "bigint", "float64": "double"}
_CELL = re.compile(r"\b([a-z]\w*)\.(\w+)\.(\w+)\b")


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


class Source(NamedTuple):
    """Where a table was printed: the ledger's name of the document, and its section(s)."""

    document: str
    section: str


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
    tables = DATA.glob(f"{chapter}_*.csv" if chapter else "*.csv")
    return sorted(path.stem for path in tables if path != CHECKS)


@cache
def source(name: str) -> Source:
    """Where the table was printed. RecordError where the file doesn't say."""
    text = _path(name).read_text("utf-8")
    document, section = (
        " ".join(re.findall(rf"^# *{key}: *(.*?) *$", text, re.MULTILINE))
        for key in ("document", "section")
    )
    if document not in DOCUMENTS or not section:
        raise RecordError(
            f"{_path(name)} doesn't name its source. It must start with the lines '# document:"
            f" NAME' (one of {', '.join(DOCUMENTS)}) and '# section: …'."
        )
    return Source(document, section)


@cache
def _read(path: Path) -> pd.DataFrame:
    """The table as text, keyed by its first column, comment lines left out."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    try:
        head, *rows = csv.reader(lines, strict=True)
        frame = pd.DataFrame(rows, columns=head, dtype=str).set_index(head[0])
    except (csv.Error, ValueError) as error:  # of a line of more cells, or of fewer, pandas tells
        raise RecordError(
            f"{path} is not a readable table: {error}. Restore it from version control."
        ) from None
    bad = [key for key in frame.index if not str(key).isidentifier()]
    if bad or not frame.index.is_unique:
        raise RecordError(
            f"{path}: the first column must hold unique plain names; look at"
            f" {bad or 'its repeats'}."
        )
    return frame


def printed(name: str) -> pd.DataFrame:
    """The table as text, every cell as it was typed."""
    return _read(_path(name)).copy()


def second_entry(name: str) -> pd.DataFrame:
    """The independently typed transcription of the table, as text."""
    return _read(DATA / "second_entry" / f"{name}.csv").copy()


@cache
def read_table(name: str) -> pd.DataFrame:
    frame = printed(name)
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

    RecordError where there is no such table, or it doesn't name its source.
    """
    source(name)
    return read_table(name).copy()


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


# ---- what follows from the print


@cache
def _database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})  # so that a process may fork
    _load_tables(connection)
    connection.execute("USE printed")
    return connection


def _load_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(_statements())
    connection.execute(_DERIVED.read_text("utf-8"))
    connection.execute("USE memory")


@cache
def _statements() -> str:
    cells = ["CREATE TABLE cells (table_name text, key text, column_name text, text text)"]
    made = ["ATTACH ':memory:' AS printed; USE printed"]
    for name in names():
        frame = read_table(name)
        types = {column: _TYPES.get(str(frame[column].dtype), "text") for column in frame}
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        made.append(f"CREATE TABLE {name} (key text, {columns})")
        made.append(_inserted(name, frame.itertuples(name=None)))
        texts = printed(name).to_dict("index")
        rows = ((name, key, *one) for key, row in texts.items() for one in row.items())
        cells.append(_inserted("cells", rows))
    return "; ".join([*made, *cells])


def _inserted(name: str, rows: Iterable[Iterable[object]]) -> str:
    """Literals rather than parameters, one statement: DuckDB takes milliseconds for each."""
    lines = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO {name} VALUES {lines}"


def _literal(value: object) -> str:
    if value is None or value == "" or value != value:  # NaN
        return "NULL"
    return str(value) if isinstance(value, int) else "'{}'".format(str(value).replace("'", "''"))


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Make schema `printed`: a table for each printed one, and `checks`, print against print.

    The first column of each table is `key`, the name of its rows; what a document doesn't print is
    NULL, and sizes are in the units of `data/printed`. NAME_derived has the computed columns too.
    `cells` has each cell as it was typed: table_name, key, column_name, text. `checks` has chapter,
    document, place, printed, recomputed, agrees, rule (the condition to agree) and note.
    """
    _load_tables(connection)
    connection.register("loaded", _all_checks())
    columns = 'chapter, document, "where" AS place, printed, recomputed, agrees, rule, note'
    connection.execute(f"CREATE TABLE printed.checks AS SELECT {columns} FROM loaded")
    connection.unregister("loaded")


@cache
def _all_checks() -> pd.DataFrame:
    found = [
        _checked(chapter).assign(chapter=chapter, document=source(names(chapter)[0]).document)
        for chapter in CHAPTERS
    ]
    return pd.concat(found).replace("", None)


def query(sql: str, *arguments: object) -> pd.DataFrame:
    """The rows that DuckDB finds in schema `printed`; a cell may be called TABLE.ROW.COLUMN."""
    return _database().execute(_CELL.sub(_cell_as_literal, sql), arguments).df()


def value(expression: str, *arguments: object) -> Any:
    """The value of an SQL expression over cells TABLE.ROW.COLUMN and macros of `printed.sql`."""
    return query(f"SELECT {expression} AS found", *arguments).found.tolist()[0]


def _cell_as_literal(found: re.Match[str]) -> str:
    name, key, column = found.groups()
    try:
        value = _cells(name)[key, column]
    except KeyError:
        raise RecordError(f"There is no cell {found[0]}, printed or derived.") from None
    return f"{_literal(value)}::double" if isinstance(value, float) else _literal(value)


@cache
def _cells(name: str) -> dict[tuple[str, str], object]:
    if name not in names():
        return {}
    found = _database().execute(f"FROM {_with_derived(name)}")
    columns = [column[0] for column in found.description]
    return {(row[0], c): x for row in found.fetchall() for c, x in zip(columns, row)}


@cache
def _with_derived(name: str) -> str:
    known = f"SELECT count(*) FROM duckdb_tables() WHERE table_name = '{name}_derived'"
    return f"{name}_derived" if _database().execute(known).fetchall() == [(1,)] else name


def derived(name: str) -> pd.DataFrame:
    """The table with its computed columns, or as printed if it has none; see `printed.sql`."""
    frame = table(name)
    if _with_derived(name) == name:
        return frame
    found = query(f"FROM {name}_derived").set_index("key").reindex(frame.index)
    added = [column for column in found if column not in frame]
    frame[added] = found[added]
    return frame


def lines(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file, by the names of its columns."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


CHAPTERS = sorted({check["chapter"] for check in lines(CHECKS)})
"""The chapters whose documents' figures can be recomputed."""


def recomputed(chapter: str) -> pd.DataFrame:
    """Every figure of a chapter that can be recomputed from other printed figures.

    Columns: where, printed, recomputed (both texts with units), agrees (bool), note.
    """
    if chapter not in CHAPTERS:
        raise RecordError(
            f"Nothing is recomputed for chapter {chapter!r}. Chapters: {', '.join(CHAPTERS)}."
        )
    return _checked(chapter).drop(columns="rule")


def _checked(chapter: str) -> pd.DataFrame:
    return evaluate_checks(check for check in lines(CHECKS) if check["chapter"] == chapter)


def evaluate_checks(checks: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """What lines of `checks.csv` say, each for every one of its `rows`.

    Columns: where, printed, recomputed, agrees, note, and rule, the condition to agree.

    place, printed, recomputed and note are texts with {SQL expressions:formats}. `rows` is a FROM
    clause whose columns these may name, beside cells TABLE.ROW.COLUMN; without one a line gives one
    check. `agrees` is an SQL condition, in which `printed` and `recomputed` stand for the first
    expressions of these texts; where it is empty both must say the same words.
    """
    found = []
    for check in checks:
        templates = [Formatter().parse(check[name]) for name in _TEXTS]
        texts = [[part[:3] for part in template] for template in templates]
        for agrees, *values in _answers(check, [[x for _, x, _ in one if x] for one in texts]):
            left = iter(values)
            told = ["".join(_filled(*part, left) for part in text) for text in texts]
            agreed = agrees if check["agrees"] else told[1] == told[2]
            found.append([*told, agreed, check["agrees"]])
    columns = ["where", *_TEXTS[1:], "agrees", "rule"]
    return pd.DataFrame(found, columns=columns)[_COLUMNS]


def _answers(check: Mapping[str, str], expressions: list[list[str]]) -> list[tuple[Any, ...]]:
    """Whether it agrees and the values of the expressions in each text, for each of its rows."""
    agrees = check["agrees"] or "NULL"
    for name, own in zip(_TEXTS, expressions):
        if own and name in ("printed", "recomputed"):
            agrees = re.sub(rf"\b{name}\b", f"({own[0]})", agrees)
    asked = f"SELECT {', '.join([agrees, *itertools.chain(*expressions)])}"
    if check["rows"]:
        asked += f" FROM {check['rows']}"
    try:
        return _database().execute(_CELL.sub(_cell_as_literal, asked)).fetchall()
    except duckdb.Error as error:
        raise RecordError(f"{CHECKS}, {check['place']!r}: {error}") from None


def _filled(text: str, expression: str | None, form: str | None, values: Iterator[Any]) -> str:
    """A piece of a template: its text, and the next of the values in its format."""
    if not expression:
        return text
    value = next(values)
    return text + (value if isinstance(value, str) else format(float(value), form or ""))


def disagreements(chapter: str) -> pd.DataFrame:
    """Where the print disagrees with itself: where, printed, recomputed, note."""
    rows = recomputed(chapter)
    return rows[~rows.agrees].drop(columns="agrees").reset_index(drop=True)
