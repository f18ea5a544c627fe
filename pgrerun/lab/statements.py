"""SQL and pgbench scripts in files: what is run stands where it can be read.

A chapter keeps what it runs in its folder `sql/`. A file `NAME.sql` holds statements under
headings:

    -- name: accounts
    CREATE TABLE accounts (aid int PRIMARY KEY, abalance int);

    -- name: load
    INSERT INTO accounts SELECT n, 0 FROM generate_series(1, :accounts) AS n;

and is addressed as `NAME.accounts` (file, heading); a file without headings by its name alone.
Variables are psql's: `:name` is a number, `:'name'` a text, `:"name"` an identifier, so that psql
runs the same file with `-v` (but they are filled in between $$ and $$ as well, where psql leaves
them alone). A file `NAME.pgbench` is a script for pgbench, which sets its variables itself.

The statements are sent by whoever holds a connection; this module only finds and fills them in.
Not aiosql, which reads the same headings: it sends variables as bound parameters, which CREATE
TABLE, DO and identifiers can't have and which change a statement's plan, it sends a section as one
query, and psql couldn't run its files.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import dropwhile
from pathlib import Path

import psycopg
import sqlparse
from psycopg import sql

from pgrerun.errors import BookError
from pgrerun.lab import statement_log

Value = int | float | str | bool | None

_HEADING = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)
_VARIABLE = re.compile(
    r"""--[^\n]* | (?<!:)'(?:[^']|'')*'  # a comment, a text: nothing in it is a variable
    | (?<![:\w\]]):                   # not a cast (::), not the second bound of a slice
    (?: "(?P<identifier>\w+)" | '(?P<text>\w+)' | (?P<number>[a-z_]\w*) )""",
    re.VERBOSE,
)


class Statements:
    """The files of one folder."""

    def __init__(self, folder: Path):
        """`folder` holds `*.sql` and `*.pgbench`; it is read when something is asked for."""
        self.folder = folder

    def script(self, name: str) -> str:
        """A pgbench script as it stands in its file."""
        text = _read(self.folder / f"{name}.pgbench")
        statement_log.log_source(f"{name}.pgbench", text)
        return text

    def source(self, name: str) -> str:
        """The statements called `name` ("file.heading", or "file") as they stand in their file."""
        file, _, heading = name.partition(".")
        sections = _sections(self.folder / f"{file}.sql")
        if heading not in sections:
            have = ", ".join(filter(None, sections)) or "no headings"
            raise BookError(
                f"{self.folder / file}.sql has nothing called {heading!r}; it has {have}."
            )
        return sections[heading]

    def text(self, name: str, **values: Value) -> str:
        """The statements called `name` with their variables filled in.

        BookError for a variable without a value. A value that nothing uses is none: statements that
        stand for each other as variants are given the same values.
        """
        source = self.source(name)
        statement_log.log_source(name, source)
        return fill(source, values, where=f"{self.folder.name}/{name}")

    def each(self, name: str, **values: Value) -> list[str]:
        """As `text`, a statement each, without their semicolons."""
        return list(split(self.text(name, **values)))

    def line(self, name: str, **values: Value) -> str:
        """The one statement called `name` on one line, as a single-user backend takes it."""
        [statement] = self.each(name, **values)
        return " ".join(statement.split())

    def run(
        self, connection: psycopg.Connection[tuple[object, ...]], name: str, **values: Value
    ) -> psycopg.Cursor[tuple[object, ...]]:
        """Send the statements called `name` one after the other; the cursor of the last."""
        cursor = connection.cursor()
        for statement in self.each(name, **values):
            cursor = connection.execute(statement.encode())
        return cursor


def sql_folder(module_file: str) -> Statements:
    """The folder `sql` beside a module, which gives its `__file__`, or beside its package."""
    here = Path(module_file).parent
    return Statements(
        next((p / "sql" for p in (here, here.parent) if (p / "sql").is_dir()), here / "sql")
    )


def fill(source: str, values: Mapping[str, Value], where: str = "a statement") -> str:
    """`source` with its variables replaced; see the module's docstring for their forms."""

    def value(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match[0]
        kind = match.lastgroup
        name = match[kind]
        if name not in values:
            raise BookError(f"{where} needs a value for the variable {name!r}.")
        return _written(values[name], kind, f"{where}: {name}")

    return _VARIABLE.sub(value, source)


# the same are sent in every block, and to parse them takes longer than many a statement
@lru_cache(1000)
def split(text: str) -> tuple[str, ...]:
    """The statements of a text, one each, without semicolons and comments before them."""
    return tuple(
        _bare(part)
        for part in sqlparse.split(text)
        if sqlparse.format(part, strip_comments=True).strip().strip(";")  # more than comments
    )


def _bare(part: str) -> str:
    comment = lambda line: not line.strip() or line.lstrip().startswith("--")
    return "\n".join(dropwhile(comment, part.splitlines())).strip().rstrip(";").rstrip()


def _written(value: Value, kind: str, where: str) -> str:
    if kind == "identifier":
        return sql.Identifier(*str(value).split(".")).as_string(None)
    if kind == "text":
        return sql.Literal(str(value)).as_string(None)
    if isinstance(value, str):
        raise BookError(f"{where} is a text: write :'name' in the statement, or :\"name\".")
    return sql.Literal(value).as_string(None).strip()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        have = ", ".join(sorted(other.name for other in path.parent.glob("*"))) or "nothing"
        reason = error.strerror or error
        raise BookError(f"{path} can't be read: {reason}. Beside it: {have}.") from None


@cache
def _sections(path: Path) -> dict[str, str]:
    """Heading to statements; "" for a file without headings."""
    text = _read(path)
    parts = _HEADING.split(text)
    if len(parts) == 1:
        return {"": text.strip()}
    names, bodies = parts[1::2], [body.strip() for body in parts[2::2]]
    if len(set(names)) < len(names):
        raise BookError(f"{path} has two sections of one name.")
    return dict(zip(names, bodies, strict=True))
