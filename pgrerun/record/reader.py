"""Reading one finished record, which may be a stranger's: all is checked before it is used.

A record is data. Regular files only, within limits; JSON of the shape that is written, and not
deeper; Parquet of our columns, read from a private copy by a DuckDB that may load nothing else
and has little memory; names that can stand in a path. Control characters in texts, also those that
turn the direction of writing, become visible escapes here, so that no text can move a
terminal's cursor. Markup is not escaped here: whoever writes HTML does that.
"""

import hashlib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import duckdb
import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pgrerun.errors import RecordError
from pgrerun.record import rows as table_rows
from pgrerun.record.schema import (
    COLUMNS,
    ENVIRONMENT,
    NAME,
    OBSERVATIONS,
    READABLE,
    VERDICTS,
    typed,
)
from pgrerun.record.statistics import Interval

MAX_FILE = 64 * 2**20
"""Bytes of a file of a record; those published have 0.7 MB at most."""

MAX_FILES = 80
MAX_DEPTH = 12
"""Levels of a JSON value; an environment has four."""

MAX_ROWS = 500_000
"""Observations of a chapter; those published have 9,000 at most."""

MAX_TEXT = 100 * 2**20
"""Characters in all cells of the observations together."""

MEMORY = "512MB"
"""What DuckDB may take to read them."""

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with control characters as escapes (ESC as \\x1b); line ends and tabs stay."""
    return _UNSEEN.sub(lambda one: one[0].encode("unicode_escape").decode("ascii"), text)


def _time(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


Name = Annotated[str, Field(pattern=f"^{NAME}$")]
Identifier = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,62}$")]
Text = Annotated[str, Field(max_length=100_000)]
Time = Annotated[str, Field(max_length=50), AfterValidator(_time)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Head(BaseModel):
    """`environment.json`: what was run, when, where, and the digests of the rest."""

    model_config = ConfigDict(strict=True)

    format: int
    run: Name
    chapter: Name
    key: Text
    rows: int = Field(0, ge=0, le=MAX_ROWS)  # of observations, up to format 2
    environment: dict[str, Any]
    sha256: dict[str, Digest]
    started_at: Time = ""
    finished_at: Time = ""
    notes: list[Text] = []
    tables: dict[Identifier, dict[str, Any]] = {}


class Beside(BaseModel):
    """What stands beside a verdict and decided nothing."""

    model_config = ConfigDict(strict=True)

    verdict: str = Field(pattern=r"^[a-z][a-z ]{0,39}$")
    evidence: Any = None


class Verdict(BaseModel):
    """One of `verdicts.json`; what else it may hold is kept."""

    model_config = ConfigDict(strict=True, extra="allow")

    claim: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    verdict: str = Field(pattern=r"^[a-z][a-z ]{0,39}$")
    chapter: Name | None = None
    predicate: str = Field("", max_length=100)
    printed: float | dict[str, list[float]] | None = None  # a number up to format 2
    evidence: Any = None
    note: Text = ""
    reason: Text = ""
    capability: str = Field("", max_length=1000)
    beside: dict[str, Beside] = {}
    regime: dict[str, Any] = {}


class DamagedRecord(RecordError):
    """A record that can't be read, or isn't what a record must be; `reason` says it alone."""

    def __init__(self, folder: Path, reason: str):
        super().__init__(
            f"The run record {visible(str(folder))} is damaged: {reason}. Restore it from version"
            " control or a copy, or delete the folder and run the chapter again."
        )
        self.reason = reason


@dataclass(frozen=True)
class Part:
    """The checked record of one chapter.

    `tables` are the rows of each experiment; `alone` are the observations that count of records
    that have none, or of experiments beside them. Both are empty if only what was concluded is
    wanted: a pile of strangers' records may have gigabytes.
    """

    head: Head
    alone: pd.DataFrame
    verdicts: list[dict[str, Any]]
    tables: dict[str, pd.DataFrame]

    @cached_property
    def observations(self) -> pd.DataFrame:
        """All numbers that count, in the long form (see COLUMNS).

        Made when two runs are compared: it takes longer than reading the record.
        """
        run, chapter, about = self.head.run, self.head.chapter, self.head.tables
        long = [
            table_rows.observations(run, chapter, name, rows, about[name]["units"])
            for name, rows in self.tables.items()
        ]
        whole = [part for part in [self.alone, *long] if len(part)] or [self.alone]
        return pd.concat(whole, ignore_index=True)


def read(folder: Path) -> Part:
    """Read and check the finished record in `folder`; RecordError says what is wrong with it.

    Who reads the same files again gets the same part, which nobody may change: a site asks for each
    record four times, and a page of the published run for its record twice.
    """
    content = []
    for file in files(folder):
        with _damage(folder, file.name):
            content.append((file.name, hashlib.sha256(_bytes(file)).digest()))
    return _read(folder, tuple(content))


@lru_cache(maxsize=32)  # records, of some megabytes each
def _read(folder: Path, content: tuple[tuple[str, bytes], ...]) -> Part:
    """The record in a folder whose files have these digests."""
    with duckdb.connect(config=_ALONE) as connection:
        return _checked(folder, connection, with_rows=True)


def read_many(folders: Sequence[Path]) -> list[Part | DamagedRecord]:
    """Check the finished records in `folders`, in their order: what each concluded, or its fault.

    They pass the same checks as in `read`; their rows aren't kept.
    """
    found: list[Part | DamagedRecord] = []
    with duckdb.connect(config=_ALONE) as connection:
        for folder in folders:
            try:
                found.append(_checked(folder, connection, with_rows=False))
            except DamagedRecord as error:
                found.append(error)
    return found


def _checked(folder: Path, connection: duckdb.DuckDBPyConnection, with_rows: bool) -> Part:
    files(folder)
    alone = _NO_OBSERVATIONS
    tables: dict[str, pd.DataFrame] = {}
    with _damage(folder, ENVIRONMENT):
        head = _head(_bytes(folder / ENVIRONMENT))
        # the first ones of format 3 have the file without a row
        has_more = head.format < 3 or head.rows > 0 or OBSERVATIONS in head.sha256
        data = _content(folder / OBSERVATIONS, head) if has_more else b""
        told = _content(folder / VERDICTS, head)
    with _damage(folder, VERDICTS):
        verdicts = _verdicts(told, head)
    if has_more:
        with _damage(folder, OBSERVATIONS):
            found = _observations(data, head)
            alone = found if with_rows else alone
    for name, relation in _tables(folder, head, connection):
        if with_rows:
            with _damage(folder, f"{name}.parquet"):
                tables[name] = _frame(relation)
    return Part(head, alone, verdicts, tables)


def files(folder: Path) -> list[Path]:
    """The files of a record, sorted; RecordError unless all are few, regular and not too large.

    Call it before anything of a stranger's record is copied: a link would be followed, a FIFO would
    hang.
    """
    with _damage(folder, folder.name):
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
        if len(found) > MAX_FILES:
            raise ValueError(f"it has {len(found)} files, where {MAX_FILES} are allowed")
        for entry in found:
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{entry.name} is no regular file")
            if status.st_size > MAX_FILE:
                raise ValueError(f"{entry.name} has more than {MAX_FILE} bytes")
        return [Path(entry.path) for entry in found]


@contextmanager
def _damage(folder: Path, name: str) -> Iterator[None]:
    """Report what can't be read of the record as damage, with the way out."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        reason = f"{name}: {where}: {first['msg']}"
    except RecursionError:
        reason = f"{name} is nested too deeply"
    except (OSError, ValueError, TypeError, OverflowError, MemoryError, duckdb.Error) as error:
        reason = str(error).strip().partition("\n")[0]
        reason = reason if name in reason else f"{name}: {reason}"
    else:
        return
    raise DamagedRecord(folder, visible(reason)[:500].rstrip("."))


def _bytes(path: Path) -> bytes:
    """The content of a regular file; what has taken its place since it was listed is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path.name} is no regular file")
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ValueError(f"{path.name} has more than {MAX_FILE} bytes")
    return data


def _content(path: Path, head: Head) -> bytes:
    """The content of a record's file; ValueError if it isn't what was written."""
    data = _bytes(path)
    if path.suffix == ".json":  # a checkout may have given it other ends of lines
        data = data.replace(b"\r\n", b"\n")
    if hashlib.sha256(data).hexdigest() != head.sha256.get(path.name):
        raise ValueError(f"{path.name} is not what was written (its checksum differs)")
    return data


# ---- JSON


def _head(data: bytes) -> Head:
    found = _json(data)
    version = found.get("format") if isinstance(found, dict) else None
    if version not in READABLE or isinstance(version, bool):
        raise ValueError(f"{ENVIRONMENT} has format {version!r:.50}, this version reads {READABLE}")
    head = Head.model_validate(found)
    for part in ("machine", "packages", "parameters", "server", "settings"):
        if not isinstance(head.environment.get(part, {}), dict):
            raise ValueError(f"{ENVIRONMENT}: environment.{part} is no object")
    return head


def _verdicts(data: bytes, head: Head) -> list[dict[str, Any]]:
    found = _json(data)
    if not isinstance(found, list):
        raise ValueError(f"{VERDICTS} holds no list of verdicts")
    verdicts = [Verdict.model_validate(verdict) for verdict in found]
    for verdict in verdicts:
        besides = (other.evidence for other in verdict.beside.values())
        for evidence in (verdict.evidence, *besides, *verdict.regime.values()):
            _check_evidence(evidence)
    return [one.model_dump() | {"chapter": one.chapter or head.chapter} for one in verdicts]


def _json(data: bytes) -> Any:
    """The value, its texts made visible. ValueError for what isn't JSON, or too deep."""
    return _plain(json.loads(data, parse_constant=_no_number), MAX_DEPTH)


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        raise ValueError(f"a value has more than {MAX_DEPTH} levels")
    if isinstance(value, list):
        return [_plain(inner, levels - 1) for inner in value]
    return {visible(key): _plain(inner, levels - 1) for key, inner in value.items()}


_INTERVAL = {"estimate", "low", "high", "n", "confidence", "method"}


def _check_evidence(evidence: Any) -> None:
    """ValueError unless it is a number, a truth value, nothing, an interval, or a mapping of such.

    Ends of intervals that JSON has no number for ("inf") are texts.
    """
    if evidence is None or isinstance(evidence, (bool, int, float)):
        return
    if not isinstance(evidence, dict):
        raise ValueError(f"{VERDICTS}: a verdict rests on {evidence!r:.50}")
    if not {"estimate", "low", "high"} <= evidence.keys():
        for inner in evidence.values():
            _check_evidence(inner)
        return
    if unknown := evidence.keys() - _INTERVAL:
        raise ValueError(f"{VERDICTS}: an interval has {', '.join(sorted(unknown))[:50]!r}")
    n, confidence = evidence.get("n", 0), evidence.get("confidence", 0.95)
    if not isinstance(n, int) or not isinstance(confidence, int | float):
        raise ValueError(f"{VERDICTS}: an interval has no number n or no confidence")
    Interval(
        float(evidence["estimate"]),
        float(evidence["low"]),
        float(evidence["high"]),
        n,
        confidence,
        str(evidence.get("method", "")),
    )


# ---- Parquet


_NO_OBSERVATIONS = typed(pd.DataFrame(columns=list(COLUMNS)))


def _observations(data: bytes, head: Head) -> pd.DataFrame:
    renamed = {"arm": "variant"} if head.format == 1 else {}
    with (
        duckdb.connect(config=_ALONE) as connection,
        _relation(connection, data, OBSERVATIONS) as relation,
    ):
        frame = _numbers(relation, renamed)
    if len(frame) != head.rows:
        raise ValueError(f"{OBSERVATIONS} has {len(frame)} rows instead of {head.rows}")
    for column, kind in COLUMNS.items():
        if kind == "VARCHAR":
            clean = _flags if column == "flags" else visible
            texts = {text: clean(text) for text in frame[column].unique()}
            frame[column] = frame[column].map(texts).astype(frame[column].dtype)
    if not (frame["run"].eq(head.run) & frame["chapter"].eq(head.chapter)).all():
        raise ValueError(f"{OBSERVATIONS} holds observations of another run or chapter")
    kept = table_rows.undisturbed(frame)
    if not np.isfinite(kept["value"]).all():
        raise ValueError(f"{OBSERVATIONS} holds values that are no finite numbers")
    if kept.duplicated(["experiment", "block", "variant", "metric"]).any():
        raise ValueError(f"{OBSERVATIONS} holds an observation twice")
    return kept


_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "threads": 1,
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # It knows a file by path and date, and two tables that are copied at one tick of the clock are
    # the same /dev/fd/N: with the first one's footer the second couldn't be read, or was misread.
    "enable_external_file_cache": False,
}


@contextmanager
def _relation(
    connection: duckdb.DuckDBPyConnection, data: bytes, name: str
) -> Iterator[duckdb.DuckDBPyRelation]:
    """The rows of a Parquet file, read from a copy that stays of no reader that is killed."""
    with tempfile.TemporaryFile() as copy:
        copy.write(data)
        copy.flush()
        path = f"/dev/fd/{copy.fileno()}"
        try:
            yield connection.read_parquet(path)
        except duckdb.Error as error:
            raise ValueError(str(error).replace(path, name)) from None


def _numbers(relation: duckdb.DuckDBPyRelation, renamed: dict[str, str]) -> pd.DataFrame:
    """The rows of a file of observations, whose columns and sizes are checked before that."""
    names = {renamed.get(name, name): name for name in relation.columns}
    found = dict(zip(names, map(str, relation.types)))
    if found != COLUMNS:
        differing = ", ".join(sorted({c for c, _ in found.items() ^ COLUMNS.items()}))
        raise ValueError(f"{OBSERVATIONS} has other columns or types: {differing[:200]}")
    texts = [name for column, name in names.items() if COLUMNS[column] == "VARCHAR"]
    size = " + ".join(f'coalesce(sum(length("{name}")), 0)' for name in texts)
    full = [name for column, name in names.items() if column != "value"]  # whose NaN is NULL
    holes = " + ".join(f'count(*) - count("{name}")' for name in full)
    rows, characters, missing = relation.aggregate(f"count(*), {size}, {holes}").fetchall()[0]
    if rows > MAX_ROWS or characters > MAX_TEXT or missing:
        raise ValueError(
            f"{OBSERVATIONS} has {rows} rows, {characters} characters and {missing} empty"
            f" cells; at most {MAX_ROWS}, {MAX_TEXT} and 0 are allowed"
        )
    columns = ", ".join(f'"{name}" AS "{column}"' for column, name in names.items())
    frame: pd.DataFrame = relation.project(columns).df()
    return frame


_UNSEEN_SQL = (
    r"[\x{00}-\x{08}\x{0b}-\x{1f}\x{7f}-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
)
"""`_UNSEEN` in the words of DuckDB, whose texts have no surrogates."""
_COLUMN = re.compile("[a-z][A-Za-z0-9_]{0,62}")
_UNIT_TYPES = {table_rows.TEXT: {"VARCHAR"}, table_rows.TRUTH: {"BOOLEAN"}}
_NUMBERS = {"BIGINT", "DOUBLE", "INTEGER"}
_TOLD = [name for name, kind in table_rows.HOW.items() if kind in ("VARCHAR", "BOOLEAN")]
"""Of how a row came about, what is never missing."""


def _tables(
    folder: Path, head: Head, connection: duckdb.DuckDBPyConnection
) -> Iterator[tuple[str, duckdb.DuckDBPyRelation]]:
    """The rows of each experiment that has any, checked; to be used before the next is asked for.

    DamagedRecord for the first that can't be read, or holds what no experiment can have yielded.
    """
    for name, about in head.tables.items():
        path = folder / f"{name}.parquet"
        if not path.exists() and not about.get("rows"):
            continue  # it was set aside
        with (
            _damage(folder, path.name),
            _relation(connection, _content(path, head), path.name) as relation,
        ):
            _check_table(relation, path.name, about)
            yield name, relation


def _check_table(relation: duckdb.DuckDBPyRelation, name: str, about: dict[str, Any]) -> None:
    """ValueError for columns, sizes and values that an experiment's rows can't have."""
    units = about.get("units")
    if not isinstance(units, dict) or not all(isinstance(u, str) for u in units.values()):
        raise ValueError(f"{name} has no units")
    found = dict(zip(relation.columns, map(str, relation.types)))
    known = table_rows.DTYPES
    wrong = [c for c, kind in found.items() if kind not in known or not _COLUMN.fullmatch(c)]
    wrong += [c for c, kind in table_rows.HOW.items() if found.get(c) != kind]
    if wrong:
        raise ValueError(f"{name} has other columns or types: {', '.join(wrong)[:200]}")
    texts = [column for column, kind in found.items() if kind == "VARCHAR"]
    size = " + ".join(f'coalesce(sum(length("{column}")), 0)' for column in texts)
    rows, characters = relation.aggregate(f"count(*), {size}").fetchall()[0]
    if rows > MAX_ROWS or characters > MAX_TEXT or rows != about.get("rows"):
        raise ValueError(
            f"{name} has {rows} rows and {characters} characters, not"
            f" {about.get('rows')!r:.20} rows, at most {MAX_ROWS}, and {MAX_TEXT} characters"
        )
    factors = [column for column in found if column not in units and column not in table_rows.HOW]
    # one that is called as a column of HOW is kept as that (an `answer`: as a text)
    metrics = [column for column in found if column in units and column not in table_rows.HOW]
    faults = {f"empty cells in {column}": f'"{column}" IS NULL' for column in _TOLD}
    faults["looks that are no numbers"] = (
        "NOT regexp_full_match(looks, '([0-9]{1,6}(,[0-9]{1,6})*)?')"
    )
    for column in factors:
        if found[column] == "VARCHAR":
            faults[f"control characters in {column}"] = (
                f"""regexp_matches("{column}", '{_UNSEEN_SQL}')"""
            )
    for column in metrics:
        if found[column] not in _UNIT_TYPES.get(units[column], _NUMBERS):
            # what no row has is kept as a text
            faults[f"another kind of value in {column}"] = f'"{column}" IS NOT NULL'
        elif found[column] == "DOUBLE":
            faults[f"values of {column} that are no finite numbers"] = (
                f"""disturbed = '' AND NOT isfinite("{column}")"""
            )
    counts = ", ".join(f"coalesce(count_if({fault}), 0)" for fault in faults.values())
    for fault, number in zip(faults, relation.aggregate(counts).fetchall()[0]):
        if number:
            raise ValueError(f"{name} has {fault}")
    same = ", ".join(f'"{column}"' for column in [*factors, "comparison", "block"])
    repeated = relation.filter("block IS NOT NULL AND disturbed = ''").aggregate(
        f"{same}, count(*) AS times", same
    )
    if repeated.filter("times > 1").limit(1).fetchall():
        raise ValueError(f"{name} has a measurement twice")


def _frame(relation: duckdb.DuckDBPyRelation) -> pd.DataFrame:
    frame: pd.DataFrame = relation.df()
    found = dict(zip(relation.columns, map(str, relation.types)))
    for column, kind in found.items():
        if kind == "VARCHAR":
            frame[column] = frame[column].map(visible, na_action="ignore")
    return frame.astype({column: table_rows.DTYPES[kind] for column, kind in found.items()})


def _flags(text: str) -> str:
    found = json.loads(text, parse_constant=_no_number)
    if not isinstance(found, dict):
        raise ValueError(f"{OBSERVATIONS} has flags that are no object")
    plain = _plain(found, MAX_DEPTH)
    return text if plain == found else json.dumps(plain, ensure_ascii=False, sort_keys=True)
