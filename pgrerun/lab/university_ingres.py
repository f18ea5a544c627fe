"""University INGRES 6.3 of 1981 itself, its work counted instead of timed.

Neither INGRES nor what runs it is part of this book. Somebody who has it running on a simulated
PDP-11 gives a folder with one program, `bin/ingres-run`, of this protocol:

    INGRES_COUNTERS=FILE  bin/ingres-run FOLDER [--separate] [--requests] < QUEL

- FOLDER holds one database, and is made with an empty one if it isn't there. Files that QUEL's
  `copy` reads lie in FOLDER/files, and are "/files/NAME" in QUEL.
- The standard input is QUEL, its commands separated by "\\g", as in the terminal monitor. The
  standard output is what INGRES prints. It ends with status 0, also if INGRES refuses a command.
- `--separate`: the processes of the smaller machine, with decomposition and the one-variable
  processor (ovqp) apart. `--requests`: with every request for a page, in order.
- To FILE it appends a line of JSON for each command, and first one for the start:
  {"command": 1, "quel": "retrieve ...", "errors": ["2100"], "rows": ["|   1|abc |"],
  "processes": [{"process": "parser", "instructions": 67794, "reads": 5, ..., "calls":
  {"lseek": 5}, "routines": {"getsymbol": [3471, 21, 4550, 63, 42, 7]}, "pages": {"parts":
  {"reads": 3, "pages_read": 2, "writes": 0, "pages_written": 0}}}],
  "requests": [["parser", "r", "parts", 0]]}.
  `errors` are the numbers of INGRES's messages; `rows` the tuples as printed. Of a process:
  instructions of the user's mode, system calls by name (`calls`), those that read and write files,
  pipes ("messages") and the terminal by kind, per routine the numbers of `Routine`, and per
  relation (or file) the pages of 512 bytes. Nothing of it depends on the
  machine: a second run has the same numbers.

The folder is taken from the environment variable PGRERUN_INGRES until builds of it are registered
with `pgrerun releases add ingres FOLDER`.
"""

import json
import os
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pgrerun.errors import CannotMeasure, QueryError
from pgrerun.lab.server.private import Closing, PrivateDirectory, base_directory

VARIABLE = "PGRERUN_INGRES"
PAGE = 512
"""Bytes of a page of INGRES on the PDP-11; the memorandum's VAX had 1024."""
UNITS = {
    "instructions": "instructions",
    "system_calls": "calls",
    "seeks": "calls",
    "reads": "reads",
    "writes": "writes",
    "messages_read": "messages",
    "messages_written": "messages",
    "terminal_reads": "bytes",
    "terminal_writes": "writes",
    "terminal_bytes": "bytes",
    "relation_reads": "reads",
    "relation_pages": "pages",
    "relation_writes": "writes",
    "catalog_reads": "reads",
    "temporary_reads": "reads",
    "temporary_writes": "writes",
}
"""Of the numbers in `Process.row`, whose `process` is a factor."""
_BY_KIND = [
    f"{kind}_{what}"
    for kind in ("relation", "catalog", "temporary")
    for what in ("reads", "pages", "writes")
]
_HOUR = 3600
CATALOGS = {"relation", "attribute", "indexes", "tree", "protect", "integrities"}
_CODES = {"i1": "b", "i2": "h", "i4": "I"}  # and c1 to c255


@dataclass(frozen=True)
class Pages:
    """Of one relation: requests for pages, and how many different pages they were for."""

    reads: int
    pages_read: int
    writes: int
    pages_written: int


@dataclass(frozen=True)
class Routine:
    """Of one routine: instructions of its own, times it was entered, instructions with all that it
    called (of calls that have ended), conditional branches that weren't taken and that were, and
    how many there are in its code.
    """

    instructions: int
    calls: int
    inclusive: int
    failed_branches: int
    taken_branches: int
    branches: int


@dataclass(frozen=True)
class Process:
    """What one program did for one command; `counts` are the protocol's single numbers."""

    process: str
    counts: dict[str, int]
    calls: Mapping[str, int]
    routines: Mapping[str, Routine]
    pages: Mapping[str, Pages]

    def row(self) -> dict[str, Any]:
        """What it did as a row: instructions, system calls, requests by kind of file.

        relation_pages are the different pages that relation_reads were for.
        """
        found = dict.fromkeys(_BY_KIND, 0) | self.counts
        found["system_calls"] = sum(self.calls.values())
        found["seeks"] = self.calls.get("lseek", 0)
        found["terminal_reads"] = self.counts.get("stdin_bytes", 0)
        for name, pages in self.pages.items():
            if name in CATALOGS:
                kind = "catalog"
            elif name.startswith("_SYS"):
                kind = "temporary"
            elif name.isupper():  # INGQ1000, the monitor's own file
                continue
            else:
                kind = "relation"
            found[f"{kind}_reads"] += pages.reads
            found[f"{kind}_pages"] += pages.pages_read
            found[f"{kind}_writes"] += pages.writes
        return {"process": self.process} | {name: found[name] for name in UNITS}


@dataclass(frozen=True)
class Command:
    """A command, its answer as printed, and what each process did for it, in no set order.

    requests, if asked for: process, "r" or "w", relation, page; in their order.
    """

    errors: tuple[str, ...]
    rows: tuple[str, ...]
    processes: tuple[Process, ...]
    requests: tuple[tuple[str, str, str, int], ...] = ()

    def calls(self, routine: str) -> int:
        """How often any process called a routine."""
        return sum(one.routines[routine].calls for one in self.processes if routine in one.routines)

    def reads(self, relation: str) -> int:
        """Requests of all processes for pages of a relation."""
        return sum(one.pages[relation].reads for one in self.processes if relation in one.pages)


class UniversityIngres(Closing):
    """A database of its own on University INGRES; a context manager, which removes it.

    folder: the build, with bin/ingres-run; without one, of the environment. separate: with the
    one-variable processor in a process of its own. CannotMeasure if there is no such build.
    """

    def __init__(self, folder: Path | None = None, separate: bool = False):
        given = folder or os.environ.get(VARIABLE)
        self._program = Path(given) / "bin" / "ingres-run" if given else Path()
        if not given or not os.access(self._program, os.X_OK):
            raise CannotMeasure(
                "the build ingres",
                "University INGRES of 1981 isn't here: set PGRERUN_INGRES to a folder whose"
                " bin/ingres-run runs it. The published rows stand without it.",
            )
        self.separate = separate
        self._directory = PrivateDirectory(base_directory())
        self._folder = self._directory.path / "database"
        self._files = self._folder / "files"
        self._files.mkdir(parents=True)

    def close(self) -> None:
        self._directory.close()

    def run(self, *commands: str, requests: bool = False) -> list[Command]:
        """Run commands in one session, each counted apart; `requests` keeps those for pages.

        QueryError, with INGRES's own words, if it refuses one.
        """
        counters = self._directory.path / "counters"
        counters.unlink(missing_ok=True)
        options = (("--separate", self.separate), ("--requests", requests))
        done = subprocess.run(
            [self._program, self._folder, *(name for name, wanted in options if wanted)],
            input="".join(f"{command}\n\\g\n" for command in commands),
            env={**os.environ, "INGRES_COUNTERS": str(counters)},
            capture_output=True,
            text=True,
            timeout=_HOUR,
        )
        lines = counters.read_text().splitlines() if counters.exists() else []
        found = [_command(json.loads(line)) for line in lines[1:]]
        if done.returncode or len(found) != len(commands) or any(c.errors for c in found):
            said = " ".join((done.stdout + done.stderr).split())
            raise QueryError(f"University INGRES refuses a command. It says: {said[-500:]}")
        return found

    def load(
        self, relation: str, attributes: Mapping[str, str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Create a heap of attributes in INGRES's formats (i1, i2, i4, c1 to c255), and copy rows
        into it.
        """
        listed = ", ".join(f"{name} = {kind}" for name, kind in attributes.items())
        self.run(f"create {relation} ({listed})")
        self.append(relation, attributes, rows)

    def append(
        self, relation: str, attributes: Mapping[str, str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Copy rows into a relation that is there, in the order given."""
        kinds = list(attributes.values())
        packed = struct.Struct("<" + "".join(_CODES.get(k, f"{k[1:]}s") for k in kinds))
        with (self._files / "rows").open("wb") as file:
            for row in rows:
                file.write(packed.pack(*map(_as_copied, row, kinds)))
        listed = ", ".join(f"{name} = {kind}" for name, kind in attributes.items())
        self.run(f'copy {relation} ({listed}) from "/files/rows"')


def _as_copied(value: Any, kind: str) -> Any:
    if kind[0] == "c":
        return value.encode().ljust(int(kind[1:]))
    # a PDP-11 has the more significant half of four bytes first
    return (value & 0xFFFF) << 16 | value >> 16 & 0xFFFF if kind == "i4" else value


def _command(line: dict[str, Any]) -> Command:
    processes = []
    for entry in line["processes"]:
        try:
            routines = {name: Routine(*told) for name, told in entry["routines"].items()}
        except TypeError:
            raise CannotMeasure(
                "the build ingres",
                f"the build ingres doesn't tell {len(fields(Routine))} numbers of each routine, as"
                " the protocol of today has it: make it anew by the description of that",
            ) from None
        pages = {name: Pages(**told) for name, told in entry["pages"].items()}
        counts = {name: told for name, told in entry.items() if isinstance(told, int)}
        processes.append(Process(entry["process"], counts, entry["calls"], routines, pages))
    requests = tuple(tuple(request) for request in line.get("requests", ()))
    return Command(tuple(line["errors"]), tuple(line["rows"]), tuple(processes), requests)
