"""Builds: PostgreSQL as somebody compiled it, registered by a name.

`data/builds.csv` says which builds the claims ask for: a row for each with the commit and the
configuration that is meant. How one is compiled is told by PostgreSQL's own documentation. The
registry is a small file beside the fetched releases. It says where builds lie; nothing of a build
is ever copied, changed or removed.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from pgrerun.errors import CannotMeasure, ParameterError, ServerError
from pgrerun.lab.server import private
from pgrerun.lab.server.binaries import OLDEST, Programs, ask, from_folder, kept
from pgrerun.lab.server.cluster import Cluster
from pgrerun.lab.server.queries import value

TABLE = Path(__file__).parents[3] / "data" / "builds.csv"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_BITS = {b"\x7fELF\1": 32, b"\x7fELF\2": 64}  # the first five bytes of an ELF file: elf(5)


@dataclass(frozen=True)
class Wanted:
    """A row of the table: a build that claims ask for.

    name           by which it is registered
    version        as its server names itself
    commit         of PostgreSQL's history, or of another system's
    configuration  options of `configure` and constants that matter to the claims
    bits           of a pointer: "32" or "64"
    system         "PostgreSQL", or what else it is
    claims         that it decides
    about          in words
    """

    name: str
    version: str
    commit: str
    configuration: str
    bits: str
    system: str
    claims: tuple[str, ...]
    about: str

    @property
    def foreign(self) -> bool:
        """Whether it is no PostgreSQL that this room can start: another system, or too old."""
        major, minor = (*re.findall(r"\d+", self.version), "0")[:2]
        return self.system != "PostgreSQL" or (int(major), int(minor)) < OLDEST


@dataclass(frozen=True)
class Build:
    """A registered build: its name and folder, and what it said of itself when it was registered.

    Of another system, or a PostgreSQL before 8.2, which isn't asked, what the table says.

    configuration  options that `configure` was given, "" where its pg_config is missing
    bits           of a pointer; 0 where the program's file doesn't tell
    block_size     bytes of a page
    assertions     whether they are compiled in
    """

    name: str
    folder: str
    version: str
    configuration: str
    bits: int
    block_size: int
    assertions: bool

    @property
    def place(self) -> Path:
        """Its folder. ServerError if it is gone."""
        if (found := Path(self.folder)).is_dir():
            return found
        raise ServerError(self._stale(f"the folder {self.folder} is gone"))

    @property
    def programs(self) -> Programs:
        """Its programs. ServerError if they are gone, or another version's by now."""
        place = self.place
        try:
            found = from_folder(place, f"the build {self.name}")
        except ServerError as error:
            raise ServerError(self._stale(str(error).rstrip("."))) from None
        if found.version != self.version:
            raise ServerError(self._stale(f"{self.folder} holds PostgreSQL {found.version}"))
        return found

    def _stale(self, why: str) -> str:
        return (
            f"The build {self.name}, version {self.version}, isn't what was registered: {why}."
            f" Register it where it is now with `pgrerun releases add {self.name} FOLDER`, or"
            f" forget it with `pgrerun releases remove {self.name}`."
        )


def wanted() -> dict[str, Wanted]:
    """The builds that claims ask for, by name."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = [
            Wanted(**row | {"claims": tuple(row["claims"].split())})
            for row in csv.DictReader(lines)
        ]
    return {row.name: row for row in rows}


def _registry() -> Path:
    return kept() / "builds.json"


def registered() -> dict[str, Build]:
    """The builds that were registered here, by name. ServerError if the registry can't be read."""
    try:
        found = json.loads(_registry().read_text("utf-8"))
        return {name: Build(name, **build) for name, build in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise ServerError(
            f"The registry of builds {_registry()} can't be read ({error}). Remove that file, and"
            " register the builds again."
        ) from None


@contextlib.contextmanager
def _changed() -> Iterator[dict[str, Build]]:
    """The registry, to be changed in the block; written whole afterwards, or not at all."""
    file = _registry()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = registered()
        yield found
        rows = {name: asdict(build) for name, build in found.items()}
        for row in rows.values():
            del row["name"]
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", "utf-8")
        os.replace(draft, file)


def add(name: str, folder: str | Path) -> Build:
    """Register what lies in a folder, or in its bin/, and return what it says of itself.

    Its server is started once, as a throwaway cluster; what the table calls another system, or a
    PostgreSQL before 8.2, is taken as it is. One that was registered by this name is forgotten.
    ParameterError for a name that won't do, ServerError for a folder that holds no PostgreSQL that
    runs here; then the registry stays as it was.
    """
    if not _NAME.fullmatch(name):
        raise ParameterError(
            "A build's name is made of letters, digits, dots, - and _, and begins with a letter or"
            f" a digit; {name[:80]!r} is not."
        )
    place = Path(folder).expanduser().absolute()
    known = wanted().get(name)
    build = _described(known, place) if known and known.foreign else _examined(name, place)
    with _changed() as builds:
        builds[name] = build
    return build


def remove(name: str) -> Build:
    """Forget a registered build, which stays where it is. ParameterError if there is none."""
    with _changed() as builds:
        if name not in builds:
            raise ParameterError(
                f"There is no build {name[:80]!r} registered; there are:"
                f" {', '.join(builds) or 'none'}."
            )
        return builds.pop(name)


LEFT: dict[str, str] = {}
"""Builds that are registered and were left aside by this process, and why."""


@cache
def obstacle(build: Build) -> str:
    """Why no server of a build starts here, "" if one does; tried once by each process."""
    try:
        Cluster(build.programs).close()
    except ServerError as error:
        return str(error).rstrip(".")
    return ""


def complete(groups: Sequence[Sequence[str]], require: Callable[[str], object]) -> list[str]:
    """The builds of those of some groups that are whole: `require` refuses none of their builds.

    CannotMeasure, as of the first that is refused, if no group is whole.
    """
    refused: dict[str, CannotMeasure] = {}
    for name in dict.fromkeys(itertools.chain(*groups)):
        try:
            require(name)
        except CannotMeasure as reason:
            refused[name] = reason
            if name in registered():
                LEFT[name] = str(reason)
    whole = [name for group in groups if not refused.keys() & set(group) for name in group]
    if not whole:
        raise next(iter(refused.values()))
    return whole


def _described(known: Wanted, place: Path) -> Build:
    if not place.is_dir():
        raise ServerError(f"There is no folder {place}, so {known.name} can't be registered.")
    bits = int(known.bits or 0)
    return Build(known.name, str(place), known.version, known.configuration, bits, 0, False)


def _examined(name: str, place: Path) -> Build:
    """What a PostgreSQL says of itself, and its running server."""
    programs = from_folder(place, f"the folder {place}")
    try:
        with Cluster(programs) as server, server.connect() as connection:
            block_size = int(value(connection, str, "SHOW block_size"))
            assertions = value(connection, str, "SHOW debug_assertions") == "on"
    finally:
        private.forget_copy(programs.bindir.parent)
    return Build(
        name,
        str(programs.bindir),
        programs.version,
        _configuration(programs),
        _bits(programs.bindir / "postgres"),
        block_size,
        assertions,
    )


def _configuration(programs: Programs) -> str:
    """What `configure` was given, as pg_config tells it."""
    if programs.has("pg_config"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            said = ask(programs.bindir / "pg_config", "--configure")
            said.check_returncode()
            return said.stdout.strip()
    return ""


def _bits(program: Path) -> int:
    with program.open("rb") as file:
        return _BITS.get(file.read(5), 0)
