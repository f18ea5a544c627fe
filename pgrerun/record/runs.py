"""The record of a run: what was observed, where, and what was concluded.

    RUNS/<name>/<chapter>/            a finished record
        EXPERIMENT.parquet            the rows of an experiment (see `rows`)
        observations.parquet          only in records up to format 2: all numbers, see COLUMNS
        verdicts.json                 the judged claims
        environment.json              machine, server, versions, parameters; sizes and checksums
    RUNS/<name>/<chapter>.partial/    a run under way, or one that was interrupted
        journal.jsonl                 a head line, then one fsynced line per measurement

The journal is lines of JSON rather than an SQLite database: a person can read it and mend it with
an editor, as its messages say; a measurement costs one flush where a rollback journal takes more;
and the lock is the folder's, with which it moves. sqlite3 would replace the two functions that
append and cut off a torn line, not the keys, the moving aside and the resuming around them.

`Run` writes, `load` reads, `compare` puts two records side by side. What is worth observing is
`experiment`'s business, what follows from it `claims`'. Nothing here ever stores a password.

RUNS is the folder that the environment variable PGRERUN_RUNS names, else data/runs of the checkout.
"""

import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import pandas as pd

from pgrerun import credentials
from pgrerun.errors import ParameterError, RecordError
from pgrerun.record import reader, rows, statistics
from pgrerun.record.schema import (
    COLUMNS,
    ENVIRONMENT,
    FORMAT,
    JOURNAL,
    OBSERVATIONS,
    VERDICTS,
    is_name,
)

__all__ = [
    "COLUMNS",
    "ENVIRONMENT",
    "JOURNAL",
    "OBSERVATIONS",
    "PUBLISHED",
    "VERDICTS",
    "Record",
    "Run",
    "chapters",
    "compare",
    "explanations",
    "folder",
    "is_published",
    "load",
    "published",
    "root",
    "scrub",
]

PUBLISHED = "published"  # the name of the committed run; others of the same are published-2, ...

CHECKOUT = Path(__file__).resolve().parents[2] / "data" / "runs"


def root() -> Path:
    """The folder of all run records."""
    return Path(os.environ.get("PGRERUN_RUNS") or CHECKOUT)


def _word(text: str, what: str) -> str:
    if not is_name(text):
        raise ParameterError(
            f"{text!r:.120} can't name a {what}: use up to 100 letters, digits, '-' and '_', and"
            " start with a letter or digit."
        )
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# ---- what must not be stored


def scrub(value: Any) -> Any:
    """The value without secrets, ready for JSON: mappings, lists and texts are searched through.

    What a secret is, `credentials` says.
    """
    if isinstance(value, Mapping):
        return {
            str(k): "***" if credentials.names_one(str(k)) and v else scrub(v)
            for k, v in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [
            scrub(v)
            for v in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
        ]
    if hasattr(value, "item"):  # a numpy scalar
        return scrub(value.item())
    if isinstance(value, int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return credentials.hidden(str(value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# ---- writing


class Run:
    """A run under way. Use as a context manager: an exception keeps what was finished.

    `environment` is the scrubbed description of where it runs, `verdicts` the verdicts so far,
    `notes` what happened to the record itself (a resumed, torn or set-aside journal), in sentences.
    """

    def __init__(
        self, name: str, chapter: str, key: str, environment: Mapping[str, Any], folder: Path
    ):
        """Use `Run.open`."""
        self.name, self.chapter, self.key = name, chapter, key
        self.environment: dict[str, Any] = scrub(environment)
        self.notes: list[str] = []
        self.started_at = ""
        self._folder = folder
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._complete: dict[str, dict[str, Any]] = {}
        self._completes = False  # a finished run, to which what it lacks is added
        self._lock = self._journal = -1

    @classmethod
    def open(
        cls,
        name: str,
        chapter: str,
        *,
        key: str,
        environment: Mapping[str, Any],
        records: Path | None = None,
    ) -> "Run":
        """Start a run, or resume one that was interrupted.

        `key` stands for everything that must be equal for observations to belong together
        (parameters, server version, code). An unfinished run with the same key is resumed; one
        with another key is moved aside, which `notes` says. RecordError when another process
        writes this record, the journal is damaged, or one that `reopen` took up has another key;
        ParameterError for an unusable name. `records` is the folder of all, if not `root()`.
        """
        folder = (records or root()) / _word(name, "run") / f"{_word(chapter, 'chapter')}.partial"
        run = cls(name, chapter, key, environment, folder)
        try:
            run._acquire()
            run._resume()
        except OSError as error:
            run.release()
            raise RecordError(
                f"The run record {folder} can't be written: {error.strerror or error}. Mend that,"
                " or set PGRERUN_RUNS to another folder."
            ) from None
        except BaseException:
            run.release()
            raise
        return run

    @classmethod
    def reopen(cls, name: str, chapter: str) -> list[str]:
        """Take a finished run up again, and return the experiments that it lacks.

        The next run of its name with the same parameters, server and code resumes it, and measures
        those alone. One that was taken up before and interrupted stays as it is. RecordError where
        there is no such run, or it isn't whole.
        """
        [part] = load(name, chapter).parts
        about = part.head.tables
        run = cls.open(name, chapter, key=part.head.key, environment={})
        try:
            if not run._rows and not run._complete:
                run.started_at = part.head.started_at
                run._rows = {
                    table: found.astype(object).where(found.notna(), None).to_dict("records")
                    for table, found in part.tables.items()
                }
                run._complete = {table: one for table, one in about.items() if "reason" not in one}
                run._completes = True
                run._rewrite()
        finally:
            run.release()
        return [table for table in about if table not in run._complete]

    def _acquire(self) -> None:
        """Take the lock of the partial record; the lock lives and moves with its folder."""
        while True:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = os.open(
                    self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
                )
            except FileNotFoundError:  # its owner finished and removed it just now
                continue
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RecordError(
                    f"Another process is writing run {self.name!r} of chapter {self.chapter!r}"
                    f" ({self._folder}). Wait for it, or give this run another name."
                ) from None
            try:
                if os.stat(self._folder / "lock").st_ino == os.fstat(self._lock).st_ino:
                    return
            except FileNotFoundError:
                pass
            self.release()  # a lock of a folder that has gone; try the new one

    def release(self) -> None:
        for name in ("_journal", "_lock"):
            if (descriptor := getattr(self, name)) >= 0:
                os.close(descriptor)
                setattr(self, name, -1)

    def _resume(self) -> None:
        path = self._folder / JOURNAL
        head, entries = self._read_journal(path) if path.exists() else (None, [])
        if head and head["key"] != self.key:
            aside = self._folder.with_name(
                f"{self.chapter}.aside-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
            )
            self._folder.rename(aside)
            self.release()
            if head.get("completes"):
                raise RecordError(
                    f"Run {self.name!r} of chapter {self.chapter!r} was measured with other"
                    " parameters, code or server, so that nothing can be added to it. It stays as"
                    f" it is, and what was added before lies in {aside.name}. Run it anew, without"
                    " --complete, or under another name."
                )
            self._acquire()
            self.notes.append(
                "An unfinished run with other parameters, code or server was in the way: its"
                f" {len(entries)} observations were moved aside to {aside.name}."
            )
            head, entries = None, []
        self._journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.started_at = _now() if head is None else head.get("started_at", "")
        self._completes = bool(head and head.get("completes"))
        if head is None:
            self._append(self._head())
            _sync(self._folder)
        for entry in entries:
            self._remember_row(entry)
        if entries:
            finished = sum(map(len, self._rows.values()))
            self.notes.append(
                f"Resumed an interrupted run: {finished} observations were finished already."
            )

    def _head(self) -> dict[str, Any]:
        """What was run: the journal's first line, and the beginning of the finished record's."""
        return {
            "format": FORMAT,
            "run": self.name,
            "chapter": self.chapter,
            "key": self.key,
            "started_at": self.started_at,
        }

    def _read_journal(self, path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Head and entries of the journal.

        A line torn by a crash is cut off, other damage refused.
        """
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
            self.notes.append(
                "The last line of the journal was torn when its writer was killed; that measurement"
                " is repeated."
            )
        lines = data[:whole].split(b"\n")[:-1]
        parsed = [self._parse(line, number, path) for number, line in enumerate(lines, 1)]
        if not parsed:
            return None, []
        return parsed[0], parsed[1:]

    def _parse(self, line: bytes, number: int, path: Path) -> dict[str, Any]:
        wanted = {"format", "key"} if number == 1 else {"table"}
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict) or (missing := wanted - set(entry)):
                raise ValueError(
                    f"it lacks {', '.join(sorted(missing))}"
                    if isinstance(entry, dict)
                    else "it is no object"
                )
            if number == 1 and entry["format"] != FORMAT:
                raise ValueError(f"it has format {entry['format']}, this version writes {FORMAT}")
        except ValueError as error:
            raise RecordError(
                f"Line {number} of {path} is damaged ({error}). Delete that line to keep the other"
                f" observations, or delete the folder {path.parent} to start over."
                if number > 1
                else (
                    f"The first line of {path}, which says what was run, is damaged ({error})."
                    f" Delete the folder {path.parent} to start over."
                )
            ) from None
        return entry

    def _append(
        self, entry: dict[str, Any], remember: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> None:
        """Write one line and wait until the disk has it; nothing of it stays if that fails.

        Ctrl-C may come at any moment: what it finds written whole stays and is remembered, so that
        a cell that runs again finds in memory what is on the disk; half a line is taken back.
        """
        if self._journal < 0:
            raise RecordError(
                f"Run {self.name!r} of chapter {self.chapter!r} is closed; open it again to measure"
                " more."
            )
        line = (_json(entry) + "\n").encode()
        size = os.fstat(self._journal).st_size
        data = memoryview(line)
        try:
            while data:
                data = data[os.write(self._journal, data) :]
            os.fsync(self._journal)
        except OSError as error:
            os.ftruncate(self._journal, size)
            raise RecordError(
                f"An observation can't be written to {self._folder / JOURNAL}: {error.strerror}."
                " What was finished before is kept. Free some space (or set PGRERUN_RUNS to a"
                " folder on another disk) and run again: it resumes there."
            ) from None
        finally:
            if os.fstat(self._journal).st_size == size + len(line):
                remember(entry)
            else:
                os.ftruncate(self._journal, size)

    # ---- tables

    def append(self, table: str, row: Mapping[str, Any]) -> None:
        """Keep one row of an experiment for good: on return it is on the disk.

        RecordError when the disk is full. What a row may hold, `rows.check` says.
        """
        # value by value: a metric's name is no key of a secret, whatever it is
        entry = {"table": table, "row": {name: scrub(value) for name, value in row.items()}}
        self._append(entry, self._remember_row)

    def complete(self, table: str, about: Mapping[str, Any]) -> dict[str, Any]:
        """Say that an experiment has all its rows, or was set aside, and what is told of it.

        `about` has its `units`; it is given back as it was kept.
        """
        kept: dict[str, Any] = scrub(about)
        self._append({"table": table, "about": kept}, self._remember_row)
        return kept

    def _remember_row(self, entry: dict[str, Any]) -> None:
        table = entry["table"]
        if "about" in entry:
            self._complete[table] = entry["about"]
            self._rows.setdefault(table, [])
        else:
            row = entry["row"]
            self._rows.setdefault(table, []).append(row)
            if row.get("disturbed"):
                self.notes.append(
                    f"In {table}, block {row.get('block')}, a measurement was disturbed"
                    f" ({row['disturbed']}). "
                    + ("The block is left out." if row.get("left_out") else "It was made again.")
                )

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of an experiment so far, as they were kept."""
        return list(self._rows.get(table, ()))

    def about(self, table: str) -> dict[str, Any] | None:
        """What `complete` was told of an experiment; None while it isn't complete."""
        return self._complete.get(table)

    def keep_rows(self, table: str, kept: list[dict[str, Any]]) -> None:
        """Keep only these rows of an experiment, which is to be measured again or further."""
        self._complete.pop(table, None)
        if kept == self._rows.get(table, []):
            return
        self._rows[table] = kept
        self._rewrite()

    def tables(self) -> dict[str, tuple[pd.DataFrame, dict[str, str]]]:
        """Of each complete experiment its rows and their units; of one set aside, if it has any."""
        return {
            name: (rows.frame(self._rows[name], about["units"]), about["units"])
            for name, about in self._complete.items()
            if self._rows[name] or "reason" not in about
        }

    def _rewrite(self) -> None:
        entries = [
            {**self._head(), "completes": self._completes},
            *({"table": name, "row": row} for name, many in self._rows.items() for row in many),
            *({"table": name, "about": about} for name, about in self._complete.items()),
        ]
        beside = self._folder / f"{JOURNAL}.new"
        beside.write_text("".join(f"{_json(entry)}\n" for entry in entries), "utf-8")
        _sync(beside)
        os.close(self._journal)
        beside.rename(self._folder / JOURNAL)
        self._journal = os.open(self._folder / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The verdicts so far, in the order they were first given."""
        return list(self._verdicts.values())

    def add_verdict(self, verdict: Mapping[str, Any]) -> None:
        """Keep a verdict, a mapping with at least "claim" and "verdict".

        A claim's later one replaces its earlier. Verdicts follow from observations, so an
        interrupted run keeps none: they are judged again.
        """
        self._verdicts[verdict["claim"]] = scrub(verdict)

    def close(self) -> Path:
        """Write the finished record, put it in the place of an older one, and return its folder.

        Until everything is on the disk the older record stays. RecordError when it can't be
        written; the observations are kept then, and a run with the same key resumes.
        """
        if self._journal < 0:
            return self._final
        building = None
        # Nobody else writes this record now: such folders are what killed runs were building.
        for left in self._folder.parent.glob(f".{self.chapter}.{'?' * 8}"):
            shutil.rmtree(left, ignore_errors=True)
        try:
            building = Path(tempfile.mkdtemp(prefix=f".{self.chapter}.", dir=self._folder.parent))
            building.chmod(0o755)  # mkdtemp's is private; records are for reading
            self._write(building)
            _swap(building, self._final)
        except (OSError, duckdb.Error) as error:
            raise RecordError(
                f"The record of run {self.name!r} can't be written to {self._final}: {error}. Its"
                f" observations are kept in {self._folder}; free some space and run again."
            ) from None
        finally:
            if building:
                shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self.release()
        return self._final

    @property
    def _final(self) -> Path:
        return self._folder.with_name(self.chapter)

    def _write(self, folder: Path) -> None:
        tables = {name: table for name, (table, _) in self.tables().items() if len(table)}
        for name, table in tables.items():
            rows.write(table, folder / f"{name}.parquet")
        files = [VERDICTS, *(f"{name}.parquet" for name in tables)]
        (folder / VERDICTS).write_text(
            json.dumps(self.verdicts, ensure_ascii=False, indent=1) + "\n", "utf-8"
        )
        head = {
            **self._head(),
            "finished_at": _now(),
            "notes": self.notes,
            "tables": {
                name: {"rows": len(tables[name]), **about} if name in tables else about
                for name, about in self._complete.items()
            },
            "sha256": {
                name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files
            },
            "environment": self.environment,
        }
        (folder / ENVIRONMENT).write_text(
            json.dumps(scrub(head), ensure_ascii=False, indent=1) + "\n", "utf-8"
        )
        for name in (*files, ENVIRONMENT):
            _sync(folder / name)
        _sync(folder)

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.release()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def superseded_folder(final: Path) -> Path:
    return final.with_name(f".{final.name}.superseded")


def _swap(building: Path, final: Path) -> None:
    """Put a complete folder in the place of another; see `_current` for a crash in between."""
    old = superseded_folder(final)
    if final.exists():
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
    building.rename(final)
    _sync(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def _current(final: Path) -> Path:
    """The finished record: the older one, if a crash hit between the two renames of a swap."""
    old = superseded_folder(final)
    return old if old.exists() and not final.exists() else final


# ---- reading


@dataclass(frozen=True)
class Record:
    """A finished run, of one chapter or of several.

    `tables` are the rows of each experiment, by chapter and experiment, and `about` is what
    `Run.complete` was told of it. `environments` hold one entry per chapter; `parts` are what was
    read of each.
    """

    name: str
    parts: Sequence[reader.Part]
    verdicts: list[dict[str, Any]]
    environments: dict[str, dict[str, Any]]
    started: str = ""  # ISO 8601; of the chapter that was started first, empty in records of old
    finished: str = ""  # of the chapter that was finished last
    given: Mapping[str, list[str]] = field(default_factory=dict)  # words of several runs, by claim
    tables: Mapping[str, Mapping[str, pd.DataFrame]] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, dict[str, Any]]] = field(default_factory=dict)

    @cached_property
    def observations(self) -> pd.DataFrame:
        """All numbers that count, in the long form; see COLUMNS."""
        return pd.concat([part.observations for part in self.parts], ignore_index=True)

    @property
    def chapters(self) -> list[str]:
        return list(self.environments)

    @property
    def environment(self) -> dict[str, Any]:
        """The environment of the only chapter, or of the first."""
        return next(iter(self.environments.values()))


def chapters(name: str | Path) -> list[str]:
    """The chapters of which a run, by name or path, has a finished record.

    RecordError where one has a name that no chapter can have.
    """
    found = set()
    for place in folder(name).glob("*"):
        superseded = re.fullmatch(r"\.(.+)\.superseded", place.name)
        # what else is hidden was being written when its writer was killed
        if (superseded or not place.name.startswith(".")) and (place / ENVIRONMENT).is_file():
            chapter = superseded[1] if superseded else place.name
            if not is_name(chapter):
                raise RecordError(f"{place.name!r:.120} can't be the record of a chapter.")
            found.add(chapter)
    return sorted(found)


def folder(name_or_path: str | Path) -> Path:
    """A run's folder: below `root`, if there is one of that name, else in the checkout, else the
    path as given.

    So the published run is found by its name wherever PGRERUN_RUNS has the reader's own.
    RecordError for what can't be a path.
    """
    given = Path(name_or_path)
    places = (root() / given, CHECKOUT / given, given)
    try:
        return next((place for place in places if place.is_dir()), root() / given)
    except (OSError, ValueError) as error:  # too long, or with a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise RecordError(f"{str(given)!r:.120} can't name a run: {reason}.") from None


def published() -> list[str]:
    """The names of the committed runs, the first of which the pages are made from."""
    found = {one.name for place in (root(), CHECKOUT) for one in place.glob(f"{PUBLISHED}-*")}
    return [PUBLISHED, *sorted(name for name in found if is_published(name))]


def is_published(name: str) -> bool:
    """Whether a run of this name counts as one of the published ones."""
    return re.fullmatch(rf"{PUBLISHED}(-[2-9])?", name) is not None


def load(name_or_path: str | Path, chapter: str | None = None) -> Record:
    """Read and check a finished record by its run's name, or by the path of a run or of a chapter.

    Without `chapter` all chapters of the run are read. RecordError where there is none, where one
    is damaged, or where it holds what a record must not (see `reader`).
    """
    place = folder(name_or_path)
    if chapter:
        folders = [_current(place / _word(chapter, "chapter"))]
    elif (place / ENVIRONMENT).exists():
        folders = [place]
    else:
        folders = [_current(place / name) for name in chapters(place)]
    if not folders or not folders[0].is_dir():
        _refuse_absent(place, chapter)
    for part in folders:
        if part != place and part.is_symlink():
            raise RecordError(f"The record of a chapter must not be a link: {part}.")
    parts = [reader.read(part) for part in folders]
    return Record(
        name=parts[0].head.run,
        parts=parts,
        verdicts=[verdict for part in parts for verdict in part.verdicts],
        environments={part.head.chapter: part.head.environment for part in parts},
        tables={part.head.chapter: part.tables for part in parts},
        about={part.head.chapter: part.head.tables for part in parts},
        started=min(part.head.started_at for part in parts),
        finished=max(part.head.finished_at for part in parts),
    )


def _refuse_absent(folder: Path, chapter: str | None) -> None:
    partial = folder / f"{chapter}.partial" if chapter else next(folder.glob("*.partial"), None)
    if partial and partial.exists():
        raise RecordError(
            f"The run in {partial} was never finished. Run the chapter again under the same run"
            " name; it resumes."
        )
    known = sorted(p.name for p in root().glob("*") if p.is_dir())
    raise RecordError(
        f"There is no run record {folder.name!r}{f' of chapter {chapter!r}' if chapter else ''} in"
        f" {folder.parent}. Runs: {', '.join(known) or 'none yet'}."
    )


# ---- comparing


def compare(a: Record, b: Record) -> pd.DataFrame:
    """What two runs both observed, indexed by chapter, experiment, variant and metric.

    Columns: unit, a and b (medians), n_a and n_b (blocks), ratio (a over b), low and high (95 %
    interval of the ratio; NaN with fewer than five blocks on a side, or where a value isn't
    positive), differs (whether the interval excludes 1). The runs' blocks are independent, not
    pairs. Rows that only one run has are left out. See `agreement.changes` for the conclusions.
    """
    left, right = _medians(a).add_suffix("_a"), _medians(b).add_suffix("_b")
    # whole records have hundreds of thousands of numbers, nearly all of which were taken once
    both = left.join(right, how="inner")
    same = both["unit_a"] == both["unit_b"]
    found = pd.DataFrame(
        {
            "unit": both["unit_a"].where(same, both["unit_a"] + " / " + both["unit_b"]),
            "a": both["median_a"],
            "b": both["median_b"],
            "n_a": both["size_a"],
            "n_b": both["size_b"],
            "ratio": (both["median_a"] / both["median_b"]).where(same & (both["median_b"] != 0)),
            "low": math.nan,
            "high": math.nan,
            "differs": False,
        }
    )
    repeated = both[["size_a", "size_b"]].min(axis=1) >= statistics.ENOUGH
    positive = both[["min_a", "min_b"]].min(axis=1) > 0
    chosen = both.index[same & repeated & positive]
    ours, theirs = _values(a, chosen), _values(b, chosen)
    for key in chosen:
        interval = statistics.ratio_of_medians(ours[key], theirs[key])
        excluded = not interval.low <= 1 <= interval.high
        found.loc[key, ["ratio", "low", "high"]] = interval.estimate, interval.low, interval.high
        found.loc[key, "differs"] = excluded
    return found


_NUMBER = ["chapter", "experiment", "variant", "metric"]  # what was observed, by names


def _medians(record: Record) -> pd.DataFrame:
    return record.observations.groupby(_NUMBER, sort=False).agg(
        unit=("unit", "first"),
        median=("value", "median"),
        size=("value", "size"),
        min=("value", "min"),
    )


def _values(record: Record, chosen: pd.Index) -> dict[Any, pd.Series]:
    values = record.observations.set_index(_NUMBER)["value"]
    chosen_ones = values[values.index.isin(chosen)]
    return dict(list(chosen_ones.groupby(level=_NUMBER, sort=False)))


def flat(tree: Mapping[str, Any], joint: str) -> dict[str, Any]:
    """A tree's leaves by their paths: {"machine.cpus": 2}, joined by "."."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= {f"{name}{joint}{rest}": leaf for rest, leaf in flat(value, joint).items()}
        else:
            found[name] = value
    return found


# Differ between any two runs, and tell the machine's state of a moment rather than what it is.
_MOMENTARY = (
    "machine.load_average",
    "machine.clock_reading_seconds",
    "machine.fdatasync_8k_seconds",
    "machine.swap_used_bytes",
)


def explanations(a: Record, b: Record) -> pd.DataFrame:
    """What may explain that verdicts differ: where the environments of the chapters that both runs
    have differ, but for what differs between any two runs.

    Indexed by chapter and entry ("machine.cpu").
    Columns a and b, as texts; empty where a side lacks the entry.
    """
    rows = [
        (chapter, entry, left.get(entry, ""), right.get(entry, ""))
        for chapter in a.chapters
        if chapter in b.environments
        for left, right in [(_entries(a, chapter), _entries(b, chapter))]
        for entry in sorted(left.keys() | right.keys())
        if left.get(entry) != right.get(entry) and entry not in _MOMENTARY
    ]
    return pd.DataFrame(rows, columns=["chapter", "entry", "a", "b"]).set_index(
        ["chapter", "entry"]
    )


def _entries(record: Record, chapter: str) -> dict[str, str]:
    """The environment, as texts, without the account of what experiments sent, which is no
    circumstance.
    """
    around = {key: value for key, value in record.environments[chapter].items() if key != "sent"}
    leaves = flat(around, ".").items()
    return {
        # a list may hold mappings, whose order says nothing
        name: leaf
        if isinstance(leaf, str)
        else json.dumps(leaf, ensure_ascii=False, sort_keys=True)
        for name, leaf in leaves
    }
