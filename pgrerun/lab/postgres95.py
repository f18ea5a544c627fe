"""Postgres95 of 1996, and each release since, by its single-user backend: no client, no socket.

Somebody compiled it; nothing of it is in this repository. It takes a command a line from a file,
prints what it answers in the same form in all releases, and can be followed by callgrind and
strace. What differs between releases is `Release`, so that one set of commands and one set of files
give counts from 1996 to now. A backend's input is filled up to whole blocks: reading a block marks
where a command begins in the list of system calls.
"""

import copy
import getpass
import os
import re
import shutil
import struct
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import callgrind, symbols
from pgrerun.lab.server import builds, bundled, private

PAGES = ["statement", "file", "reads", "writes", "flushes"]
REQUESTS = ["statement", "file", "page", "kind"]
PAGE = 8192
BUNDLED = "bundled"
_DATABASE = "template1"
_PATIENCE = 3600  # seconds; Postgres95 can fail over and over while it undoes a failed statement
_COPYING = 60  # seconds
# a page of Postgres95: where its header ends and line pointers begin, of 13 bits place, 6 bits
# state and 13 bits length each
_POINTERS, _POINTER, _USED = 8, struct.Struct("<I"), 1
_BLOCK = 4096  # bytes that the C library reads at a time from a pipe
_COMMAND = ("StartTransactionCommand", "{}", "CommitTransactionCommand")
_CALL = re.compile(r"(\w+)\((\d+)<(.*?)>(?:\(deleted\))?.*\) += (-?\d+)")
# what a seek reaches is what it returns, or of 32 bits what it fills in
_SOUGHT = re.compile(r"lseek\((\d+)<(?:.*\[(\d+)\].*\) += 0|.*\) += (\d+))")
_VALUE = re.compile(r'\t *\d+: (\w+) = "(.*)"\t\(typeid = ')
_NODE = re.compile(
    r"^[->\s\d:=(\"]*([A-Z][A-Za-z]+(?: [A-Z][a-z]+)*)(?= on | using |  ?\(|\s*$)", re.M
)
_COST = re.compile(r"\(cost=(?:[\d.]+\.\.)?([\d.]+)")
_KINDS = {"read": "reads", "pread64": "reads", "write": "writes", "pwrite64": "writes"}
_KINDS |= {"fsync": "flushes", "fdatasync": "flushes"}


@dataclass(frozen=True)
class Release:
    """What differs between releases as far as a single-user backend is concerned.

    number: (1, 1) is Postgres95 1.01, (6, 5, 3), (18, 6). routines: what a command consists of,
    from its begin to its commit, once the line is read. mode: the words that ask for a single-user
    backend. analyze: what refreshes the planner's numbers. An unset `data` directory is told by the
    environment.
    """

    number: tuple[int, ...]

    @property
    def name(self) -> str:
        """As it is called: "Postgres95 1.01", "6.5", "18"."""
        if self.number < (6,):
            return "Postgres95 {}.{:02}".format(*self.number)
        return ".".join(map(str, self.number[: 1 if self.number >= (10,) else 2]))

    @property
    def routines(self) -> tuple[str, ...]:
        if self.number >= (7, 4):
            return ("exec_simple_query",)
        command = "pg_eval_dest" if self.number < (6,) else "pg_exec_query_dest"
        return tuple(name.format(command) for name in _COMMAND)

    @property
    def mode(self) -> tuple[str, ...]:
        return (
            ("--single", "-F") if self.number >= (8, 2) else ("-F",) if self.number >= (6,) else ()
        )

    @property
    def analyze(self) -> str:
        return "vacuum analyze" if self.number >= (6,) else "vacuum"


class Backend(private.Closing):
    """Files of one database, and single-user backends on them, one at a time.

    `folder` holds `bin/` as an installation leaves it, and Postgres95's `data/files/`.
    `options` go to every backend: "-B 1024" is the pool's pages, "-S" Postgres95's stable memory.
    The files are removed by `close()` and at exit. ServerError if there is no such program, or if
    it can't make its files.
    """

    def __init__(self, folder: Path, release: Release, options: str = "-B 1024"):
        self.folder, self.release, self.options = Path(folder), release, tuple(options.split())
        if not os.access(self.folder / "bin" / "postgres", os.X_OK):
            raise ServerError(
                f"There is no program bin/postgres in {self.folder}, which should hold"
                f" {release.name}. Name the folder it was installed into."
            )
        self._who = private.account()
        self._home = private.PrivateDirectory(private.base_directory(), self._who)
        self.data, self.scratch = self._home.folder("data"), self._home.folder("scratch")
        self._make_files()

    @classmethod
    def of(cls, name: str, options: str = "-B 1024") -> "Backend":
        """Of a registered build, or of the bundled release.

        CannotMeasure if there is none, or if it can't be started.
        """
        if name == BUNDLED:
            return cls(bundled().bindir.parent, Release(bundled().release), options)
        if not (build := builds.registered().get(name)):
            raise CannotMeasure(
                f"build {name}",
                f"it needs the build {name}, which `pgrerun releases` describes: somebody has to"
                f" compile it and to say where it is by `pgrerun releases add {name} FOLDER`",
            )
        version = tuple(map(int, re.findall(r"\d+", build.version)))
        try:
            top = build.place.parent if build.place.name == "bin" else build.place
            return cls(top, Release(version), options)
        except ServerError as error:
            why = f"the build {name} can't be started: {str(error).rstrip('.')}"
            raise CannotMeasure(f"build {name}", why) from None

    def close(self) -> None:
        """Remove the files."""
        self._home.close()

    def run(self, statements: Sequence[str]) -> list[list[dict[str, str]]]:
        """The rows that each statement answers with, values as text. ServerError if one fails."""
        printed = self._backend(statements).stdout
        answers: list[list[dict[str, str]]] = [[] for _ in range(len(statements) + 1)]
        number, row = -1, {}
        for line in printed.splitlines():
            while line.startswith(("> ", "backend> ")):
                line, number = line.partition("> ")[2], number + 1
            if found := _VALUE.match(line):
                row[found[1]] = found[2]
            elif line == "\t----" and row:
                answers[number].append(row)
                row = {}
        return answers[: len(statements)]

    def plan(self, statement: str) -> str:
        """The nodes that EXPLAIN names, from the top: "Hash Join, Seq Scan, Hash, Seq Scan"."""
        return ", ".join(_NODE.findall(self._explained(statement)))

    def cost(self, statement: str) -> float:
        """What EXPLAIN says that the topmost node costs."""
        found = _COST.search(self._explained(statement))
        assert found
        return float(found[1])

    def instructions(
        self, statements: Sequence[str], callers: int = 0, of: str = ""
    ) -> pd.DataFrame:
        """Instructions that each statement executes, from its begin to its commit, by function.

        Columns as `callgrind.profile`. The first of a kind pays for filling catalog caches: list it
        twice and read the second. With `callers`, a function is told apart by so many of its
        callers, as "function'caller"; with `of` only functions whose names fit it (* and ?), which
        makes far smaller dumps. Where a compiler left the routine of a whole command no name
        of its own (9.1, 9.2), reading the line is counted with it. CannotMeasure without valgrind.
        """
        callgrind.require()
        options = [f"--toggle-collect={name}" for name in self.release.routines]
        options.append(f"--dump-after={self.release.routines[-1]}")
        first = 1
        if not self._tells(self.release.routines[-1]):  # a compiler made it a part of its caller
            options, first = ["--dump-before=ReadyForQuery"], 2
        apart = f"--separate-callers{callers}={of}" if of else f"--separate-callers={callers}"
        options.append(apart if callers else "--separate-recs=1")
        with private.passing(self.scratch, "callgrind") as stem:
            options.append(f"--callgrind-out-file={stem}")
            self._backend(statements, "valgrind", "--tool=callgrind", "--quiet", *options)
            names = callgrind.Names(dict)
            parts = [Path(f"{stem}.{number + first}") for number in range(len(statements))]
            try:
                frames = [
                    callgrind.read_dump(part.read_text(errors="replace"), names).assign(statement=i)
                    for i, part in enumerate(parts)
                ]
            except FileNotFoundError:
                raise CannotMeasure(
                    "callgrind",
                    f"{self.release.name} in {self.folder} is stripped of its symbols.",
                ) from None
        return pd.concat(frames, ignore_index=True)[callgrind.COLUMNS]

    def requests(self, statements: Sequence[str], seeks: bool = True) -> pd.DataFrame:
        """What `pages` counts, one by one in their order: `REQUESTS`, kind as its columns.

        page is a number within the file, of Postgres95, if its seeks are listed as well.
        """
        if not shutil.which("strace"):
            raise CannotMeasure("strace", "System calls can't be listed: strace isn't installed.")
        out = self.scratch / f"strace-{uuid.uuid4().hex[:12]}"
        traced = "trace=" + ",".join([*_KINDS, *(("lseek", "_llseek") if seeks else ())])
        self._backend(
            statements, "strace", "-f", "-y", "-qq", "-s", "0", "-e", traced, "-o", str(out)
        )
        begins = {sum(map(_blocks, statements[:i])): i for i in range(len(statements))}
        blocks, number = 0, -1
        rows: list[tuple[int, str, int, str]] = []
        at: dict[str, int] = {}  # of each open file, where it stands
        for line in out.read_text(errors="replace").splitlines():
            if "lseek(" in line:
                if sought := _SOUGHT.search(line):
                    at[sought[1]] = int(sought[2] or sought[3])
                continue
            call = _CALL.search(line)
            if not call or call[2] in ("1", "2"):
                continue
            if call[2] == "0":  # the end of the input is a statement that there isn't
                number = begins.get(blocks, number) if call[4] != "0" else -1
                blocks += 1
            elif number >= 0 and (call[4] != "0" or _KINDS[call[1]] == "flushes"):
                page = at.get(call[2], 0) // PAGE
                rows.append((number, _file(call[3]), page, _KINDS[call[1]]))
            at[call[2]] = at.get(call[2], 0) + max(int(call[4]), 0)
        out.unlink()
        return pd.DataFrame(rows, columns=REQUESTS)

    def pages(self, statements: Sequence[str]) -> pd.DataFrame:
        """Reads, writes and flushes of each statement by file, as the operating system is asked.

        A page each, except of sorts. Columns: `PAGES`; file is a relation's name, "sort" for files
        of sorts. What the backend does before the first and after the last statement isn't told.
        CannotMeasure without strace.
        """
        found = self.requests(statements, seeks=False)
        counted = found.groupby(["statement", "file", "kind"]).size().unstack(fill_value=0)
        return counted.reindex(columns=PAGES[2:], fill_value=0).reset_index()[PAGES]

    def killed(self, statements: Sequence[str], relation: str, tuples: int) -> list[list[str]]:
        """Kill a backend that has run these statements, and then, to show that it has, copied a
        relation of so many tuples to a file: these. ServerError if they don't come.
        """
        seen = self.scratch / f"seen-{uuid.uuid4().hex[:12]}"
        lines = [*statements, f"copy {relation} to '{seen}'"]
        with subprocess.Popen(
            self._words(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._surroundings(),
        ) as backend:
            assert backend.stdin
            try:
                backend.stdin.write("".join(f"{line}\n" for line in lines).encode())
                backend.stdin.flush()
                for line in lines:
                    statement_log.log_statement(line)
                end = time.monotonic() + _COPYING
                while not seen.exists() or seen.read_text().count("\n") < tuples:
                    if backend.poll() is not None or time.monotonic() > end:
                        raise ServerError(f"{self.release.name} didn't copy {relation}.")
                    time.sleep(0.01)
            finally:
                backend.kill()
        found = [line.split("\t") for line in seen.read_text().splitlines()]
        seen.unlink()
        return found

    def file(self, relation: str) -> Path:
        """Where a relation lies."""
        [found] = [path for path in self.data.rglob(relation) if path.parent.name == _DATABASE]
        return found

    def versions(self, relation: str) -> int:
        """How many versions of tuples lie in a relation's file, valid or not; of Postgres95."""
        data, number = self.file(relation).read_bytes(), 0
        for start in range(0, len(data), PAGE):
            [lower] = struct.unpack_from("<H", data, start)
            pointers = range(start + _POINTERS, start + max(lower, _POINTERS), _POINTER.size)
            number += sum(_POINTER.unpack_from(data, at)[0] >> 13 & 63 == _USED for at in pointers)
        return number

    @contextmanager
    def copied(self, options: str = "") -> Iterator["Backend"]:
        """The same database in files of its own, so that each measurement begins alike."""
        own = copy.copy(self)
        own.options = tuple(options.split()) or self.options
        own.data = self._home.folder(f"data-{uuid.uuid4().hex[:12]}")
        self._execute(["cp", "-Rp", f"{self.data}/.", str(own.data)])
        try:
            yield own
        finally:
            shutil.rmtree(own.data, ignore_errors=True)

    def load(self, create: str, tuples: Iterable[Sequence[object]], *further: str) -> None:
        """Make a relation by CREATE TABLE, fill it with the tuples in their order, and run further
        commands: indices, vacuum.
        """
        name = create.split()[2]
        path = self.scratch / f"{name}.data"
        lines = ("\t".join(map(str, one)) + "\n" for one in tuples)
        private.create(path, "".join(lines), self._who)
        self.run([create, f"copy {name} from '{path}'", *further])
        path.unlink()

    def _explained(self, statement: str) -> str:
        told = " with cost" if self.release.number < (6,) else ""
        done = self._backend([f"explain{told} {statement}"])
        if self.release.number < (7, 3):  # which say it twice
            return done.stderr.split("QUERY PLAN")[1]
        return done.stdout.replace('"', "\n")

    def _tells(self, routine: str) -> bool:
        """Whether the program's table of symbols has a routine; of 32 bits none is read."""
        if self.release.number < (7, 4):
            return True
        return routine in set(symbols.routines(self.folder / "bin" / "postgres")["routine"])

    def _make_files(self) -> None:
        program = self._program("initdb")
        if self.release.number >= (7, 1):
            self._execute([program, "-D", str(self.data)])
            return
        if self.release.number >= (6,):
            lib = self.folder / "lib"
            self._execute([program, f"--pglib={lib}", f"--pgdata={self.data}"])
            return
        # what its installation writes into two files of commands: who owns the catalogs
        owner, number = (
            (self._who.pw_name, self._who.pw_uid)
            if self._who
            else (getpass.getuser(), os.geteuid())
        )
        files = self.data / "files"
        files.mkdir()
        values = {
            "postgres PGUID": f"{owner} {number}",
            "PGUID": str(number),
            "OIDNAMELEN": "36",
            "NAMEDATALEN": "32",
        }
        for source in (self.folder / "data" / "files").glob("*.bki.source"):
            text = source.read_text()
            for word, value in values.items():
                text = text.replace(word, value)
            (files / source.stem).write_text(text)
        files.chmod(0o755)
        self._execute([program])

    def _backend(self, statements: Sequence[str], *under: str) -> subprocess.CompletedProcess[str]:
        """Run a backend on these statements, under another command. ServerError if one fails."""
        for statement in statements:
            statement_log.log_statement(statement)
        # the parser would read what fills a block up, which instructions would tell
        whole = "strace" in under
        lines = [one.ljust(whole * (_blocks(one) * _BLOCK - 1)) + "\n" for one in statements]
        return self._execute([*under, *self._words()], "".join(lines))

    def _words(self) -> list[str]:
        """The command that is a backend."""
        quiet = ("-Q",) if self.release.number < (7, 1) else ()
        data = ("-D", str(self.data)) if self.release.number >= (6,) else ()
        program = self._program("postgres")
        return [program, *self.release.mode, *quiet, *self.options, *data, _DATABASE]

    def _surroundings(self) -> dict[str, Any]:
        place = {
            "PGDATA": str(self.data),
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "LC_ALL": "C",
        }
        place |= {"USER": self._who.pw_name} if self._who else {}
        return {"env": place, "cwd": self.scratch, **private.drop(self._who)}

    def _program(self, name: str) -> str:
        """Where the account can run it; before 7.4 a program isn't asked for its version."""
        path = self.folder / "bin" / name
        return str(private.reachable(path, self._who) if self.release.number >= (7, 4) else path)

    def _execute(self, words: Sequence[str], input: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["timeout", str(_PATIENCE), *words],
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            **self._surroundings(),
        )
        failed = re.search(r"\b(WARN|ERROR|FATAL)\b.*", done.stderr)
        if failed or done.returncode:
            said = failed[0] if failed else done.stderr.strip()[-500:]
            raise ServerError(f"{self.release.name} failed ({Path(words[0]).name}): {said}")
        return done


@contextmanager
def started(names: Iterable[str], options: str = "-B 1024") -> Iterator[dict[str, Backend]]:
    """A backend of each build, by its name; closed afterwards.

    A build that is missing or can't be started is left out. CannotMeasure without any.
    """
    with ExitStack() as opened:
        backends: dict[str, Backend] = {}

        def start(name: str) -> None:
            backends[name] = opened.enter_context(Backend.of(name, options))

        builds.complete([[name] for name in names], start)
        yield backends


def in_all_releases(sql: str) -> str:
    """A statement of the translator as Postgres95 and its successors take it.

    They know SELECT INTO and END, and no subquery in a list of targets.
    """
    if found := re.match(r"CREATE TABLE (\w+) AS SELECT (.*?) FROM (.*)", sql):
        name, targets, rest = found.groups()
        if inner := re.match(r"SELECT (.*) FROM (\w+)\) AS (\w+)", f"{targets[1:]} FROM {rest}"):
            return f"SELECT {inner[1]} AS {inner[3]} INTO TABLE {name} FROM {inner[2]}"
        return f"SELECT {targets} INTO TABLE {name} FROM {rest}"
    return "END" if sql == "COMMIT" else sql


def _blocks(statement: str) -> int:
    return -(-(len(statement) + 1) // _BLOCK)


def _file(path: str) -> str:
    name = Path(path).name
    return "sort" if name.startswith("pg_psort") else name
