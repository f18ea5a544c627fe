"""What an experiment sends to servers: the statements of one untimed pass, and pgbench's loads.

`record` keeps account while an experiment runs; connections, files of statements and pgbench
report to it, so that what a page shows as run is what was run. Statements that differ in their
numbers alone are counted as one. Timed blocks that a warm-up preceded send the same once more and
`pause` it, so that keeping account costs them nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

NOTED = 2000  # characters of a statement in an error's note
MOST = 5000  # distinct texts that are kept, long before numbers in them are looked at
_NUMBER = re.compile(r"(?:(?<![\w.])|(?<=\.\.))\d+(?:\.\d+)?(?!\w)")  # also in 1..100


@dataclass(frozen=True)
class Load:
    """How pgbench was called: script or builtin, protocol, clients, and how long each of them ran.

    `length` is in words: "2,000 transactions of each client", "3 s".
    """

    script: str
    protocol: str
    clients: int
    length: str


@dataclass
class StatementLog:
    """The account. `sources` are statements as they stand in their files, by their name there.

    `times` is how many statements were sent, also of texts that aren't kept.
    """

    texts: Counter[str] = field(default_factory=Counter)
    loads: Counter[Load] = field(default_factory=Counter)
    sources: dict[str, str] = field(default_factory=dict)
    times: int = 0
    paused: bool = False

    def statements(self) -> list[tuple[str, int]]:
        """Distinct statements in the order they were first sent, and how often each was."""
        first: dict[str, str] = {}
        counted: Counter[str] = Counter()
        for text, times in self.texts.items():
            # those that differ in nothing but numbers are one
            kind = _NUMBER.sub("0", " ".join(text.split()))
            first.setdefault(kind, text)
            counted[kind] += times
        return [(text, counted[kind]) for kind, text in first.items()]


_now: StatementLog | None = None  # a module's variable: of one experiment at a time, in one process


@contextmanager
def record() -> Iterator[StatementLog]:
    """Keep account of what is sent inside the block."""
    global _now
    before, _now = _now, StatementLog()
    try:
        yield _now
    finally:
        _now = before


@contextmanager
def pause() -> Iterator[None]:
    """Keep no account of what is sent inside the block."""
    account = _now or StatementLog()  # nobody's, outside of an account
    before, account.paused = account.paused, True
    try:
        yield
    finally:
        account.paused = before


def log_statement(query: Any, connection: psycopg.Connection[Any] | None = None) -> None:
    """A statement is sent: text, bytes, or one that psycopg composed."""
    if _now is None or _now.paused:
        return
    _now.times += 1
    if isinstance(query, sql.Composable):
        query = query.as_string(connection)
    text = query.decode() if isinstance(query, bytes) else str(query)
    if text in _now.texts or len(_now.texts) < MOST:
        _now.texts[text] += 1


def log_source(name: str, text: str) -> None:
    """Statements called `name` are taken from their file."""
    if _now is not None and not _now.paused:
        _now.sources.setdefault(name, text)


def log_load(script: str, protocol: str, clients: int, length: str) -> None:
    """pgbench is run; see `Load`."""
    if _now is not None:
        _now.loads[Load(script, protocol, clients, length)] += 1


@contextmanager
def quoted(query: Any) -> Iterator[None]:
    """An error of syntax in the block has the whole statement as a note: the server quotes a line.

    By it one sees what a release couldn't read (`releases.lacking`).
    """
    try:
        yield
    except psycopg.errors.SyntaxError as error:
        text = query.as_string() if isinstance(query, sql.Composable) else query
        text = text.decode() if isinstance(text, bytes) else str(text)
        error.add_note(text if len(text) <= NOTED else f"{text[:NOTED]} ...")
        raise


class Cursor(psycopg.Cursor[Any]):
    """A cursor that reports what it sends."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> "Cursor":
        log_statement(query, self.connection)
        with quoted(query):
            super().execute(query, *arguments, **options)
        return self

    def executemany(self, query: Any, *arguments: Any, **options: Any) -> None:
        log_statement(query, self.connection)
        super().executemany(query, *arguments, **options)

    def copy(self, statement: Any, params: Any = None, *, writer: Any = None) -> Any:
        log_statement(statement, self.connection)
        return super().copy(statement, params, writer=writer)
