"""What an experiment sees of a server, whoever's it is: connections, tools, capabilities.

`Cluster` (cluster.py) and `Borrowed` (borrowed.py) fill in where the server is, what it
can do, and as whom its tools run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.server import private, releases
from pgrerun.lab.server.binaries import Programs
from pgrerun.lab.server.private import Account, Closing, advice, as_account, base_directory
from pgrerun.lab.server.queries import row, value

APPLICATION = "pgrerun"
# libpq's connection keywords and the environment variables that stand for them.
VARIABLES = {
    option.keyword.decode(): option.envvar.decode()
    for option in psycopg.pq.Conninfo.get_defaults()
    if option.envvar
}
_environment_lock = threading.Lock()


def without_libpq(environment: dict[str, str]) -> dict[str, str]:
    """`environment` without the user's PG* variables (PGHOST, PGOPTIONS, PGDATA, ...)."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("PG") or name.startswith("PGRERUN")
    }


@contextlib.contextmanager
def _libpq_undisturbed() -> Iterator[None]:
    """Hide the PG* variables from libpq in this process while it connects.

    Naming every keyword wouldn't do: PGSERVICE can't be overridden, only be absent.
    """
    with _environment_lock:
        theirs = os.environ.keys() - without_libpq(dict(os.environ)).keys()
        hidden = {name: os.environ.pop(name) for name in theirs}
        try:
            yield
        finally:
            os.environ.update(hidden)


class _OldCursor(statement_log.Cursor):
    """A cursor that says to an old server what it can say in other words."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> _OldCursor:
        version = self.connection.info.server_version
        if isinstance(query, bytes):
            query = releases.readable(version, query.decode()).encode()
        elif isinstance(query, str):
            query = releases.readable(version, query)
        super().execute(query, *arguments, **options)
        return self


class Server(Closing):
    """Base of `Cluster` and `Borrowed`; a context manager that closes itself.

    `owned`: ours to restart and break. `version`: server_version_num (180006).
    `schema`: where relations go. `name`: for people and for run records, never with a password.
    `scratch`: a folder that tools, and an own cluster's server, may read and write;
    put pgbench scripts there. It is the tools' working directory, so their logs land there.
    `changed`: settings that sessions have of their role or database, as they are on somebody's.
    """

    owned: bool
    version: int
    version_text: str
    schema: str
    name: str
    scratch: Path
    programs: Programs
    _account: Account | None = None

    def __init__(self) -> None:
        self.changed: dict[str, str] = {}
        self._creator = os.getpid()  # a forked child must not close its parent's server
        self._connections: weakref.WeakSet[psycopg.Connection] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"

    @property
    def address(self) -> str:
        """What messages to the reader call it, which no run record keeps."""
        return self.name

    # -- connections --

    @abstractmethod
    def connection_parameters(self) -> dict[str, str]:
        """libpq keywords that reach the database, complete, without a password."""

    def _password(self) -> str | None:
        return None

    def _lost(self, what: str, said: str) -> ServerError:
        """The error for a connection or a tool that failed; `said` is what it printed."""
        return ServerError(f"{what} failed on {self.address}: {said}")

    def ensure_alive(self) -> None:
        """Raise ServerError if the server is known to have died."""

    def _await_death(self, said: str) -> None:
        """Give a server that is going down, by what its client said, the time to do so."""

    def raise_if_crashed(self, said: str) -> None:
        """Raise ServerError if the server died on its own.

        `said` is the error that was met meanwhile.
        """

    def raise_if_disk_full(self, error: Exception) -> None:
        """Raise ServerError if what was met, by the server or by us beside it, is a disk without
        room.
        """
        on_server = isinstance(error, psycopg.errors.DiskFull)
        if not on_server and not (
            isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        ):
            return
        theirs = on_server and not self.owned
        said = str(error).splitlines()[0].rstrip(".")
        raise ServerError(
            f"{f'The disk of {self.address}' if theirs else 'The disk'} is full: {said}."
            f" {'Make room there.' if theirs else advice(base_directory())} What was measured so"
            " far is kept."
        ) from error

    def refusal(self, error: Exception) -> CannotMeasure | None:
        """Why an experiment is set aside that met this error; None if that is no reason to.

        On a server of ours nothing is refused but by a fault of ours.
        """
        return None

    def connect(self, autocommit: bool = True, **instead: str) -> psycopg.Connection:
        """A new connection whose search_path is `schema`. ServerError if there is none.

        `instead`: libpq keywords (options, dbname) in the place of the server's own.
        """
        self.ensure_alive()
        try:
            connection = self._open(autocommit, **instead)
            self._connections.add(connection)
            return connection
        except psycopg.OperationalError as error:
            failure = str(error)
        # Raised out here, so that no frame that holds a password hangs on the error.
        raise self._lost("A connection", failure)

    def _open(self, autocommit: bool, **instead: str) -> psycopg.Connection:
        password = self._password()
        secret = {"password": password} if password else {}
        text = {"client_encoding": "utf8"}  # or a database in SQL_ASCII would send bytes
        whole = make_conninfo(**text | self.connection_parameters() | secret | instead)
        with _libpq_undisturbed():
            connection = psycopg.connect(
                whole, autocommit=autocommit, cursor_factory=statement_log.Cursor
            )
        if not releases.has(connection.info.server_version, "DEALLOCATE ALL"):
            connection.prepare_threshold = None  # psycopg would say that after a DROP
        if releases.rewrites(connection.info.server_version):
            connection.cursor_factory = _OldCursor
        return connection

    def _close_connections(self) -> None:
        """Close what `connect` has handed out: an open transaction would block the end."""
        for connection in list(self._connections):
            connection.close()

    def fetch(self, query: str, *arguments: object) -> tuple[Any, ...] | None:
        with self.connect() as connection:
            return connection.execute(query, arguments or None).fetchone()

    def _holds(self, condition: str, *arguments: object) -> bool:
        """Whether a condition, an SQL expression, is true there; of no row it isn't."""
        found = self.fetch(f"SELECT {condition}", *arguments)
        return found is not None and bool(found[0])

    # -- tools --

    def environment(self) -> dict[str, str]:
        """The environment for a libpq program that is to use this server.

        The user's own PG* variables aren't in it, nor is a password: `tool` adds that.
        """
        ours = {
            VARIABLES[key]: value
            for key, value in self.connection_parameters().items()
            if key in VARIABLES
        }
        return without_libpq(dict(os.environ)) | ours | {"LC_ALL": "C", "PSQLRC": os.devnull}

    def _invocation(
        self, name: str, arguments: Sequence[object]
    ) -> tuple[list[str], dict[str, Any]]:
        environment = self.environment()
        if password := self._password():
            environment["PGPASSWORD"] = password
        if self._account:  # scripts that callers put there, whatever their umask
            private.hand_over(self.scratch, self._account)
        command, how = as_account(
            self._account, [str(self._executable(name)), *map(str, arguments)]
        )
        return command, {"env": environment, "cwd": self.scratch, **how}

    def _executable(self, name: str) -> Path:
        return self.programs.path(name)

    def tool(
        self,
        name: str,
        *args: object,
        check: bool = True,
        timeout: float | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a client program (psql, pgbench, ...) on this server's database to its end.

        Its working directory is `scratch`; stdout and stderr are text. ServerError if the
        server died, after `timeout` seconds, or, with `check`, on a failing exit status.
        """
        self.ensure_alive()
        command, how = self._invocation(name, args)
        done = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command,
                input=input,
                timeout=timeout,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",  # a server may quote anything
                **how,
            )
        if done is None:
            raise self._lost(name, f"it was still running after {timeout:g} s and was ended")
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-2000:]
            self._await_death(said)
            self.ensure_alive()
            if check:
                raise self._lost(name, f"exit status {done.returncode}: {said}")
        return done

    def require_connections(self, number: int) -> None:
        """Raise CannotMeasure unless so many more connections may be opened."""

    # -- settings --

    @contextlib.contextmanager
    def reloaded(self, **settings: str | int) -> Iterator[None]:
        """Other settings for the whole server, none of which needs a restart, for the length of a
        block.

        CannotMeasure on a server that isn't ours.
        """
        if not self.owned:
            raise CannotMeasure(
                "restart",
                f"it needs a server whose settings may be changed, and {self.name} is not ours.",
            )
        releases.require_settings(self.version, settings)
        with self.connect() as connection:
            self._alter(connection, settings)
            _reload(connection)
            try:
                yield
            finally:
                self._alter(connection, dict.fromkeys(settings))
                _reload(connection)

    def _alter(
        self, connection: psycopg.Connection, settings: Mapping[str, str | int | None]
    ) -> None:
        """Write settings for the whole server down, where its next reload finds them; None resets
        one.
        """
        for name, wanted in settings.items():
            # RESET came to 9.4 after its first beta, with bd3b7a9eef in September 2014
            value = "DEFAULT" if wanted is None else f"'{wanted}'"
            connection.execute(f"ALTER SYSTEM SET {name} = {value}")

    # -- capabilities --

    def pids(self) -> dict[int, str]:
        """Process id -> role of the server's processes; CannotMeasure if they can't be listed."""
        raise CannotMeasure(
            "processes", f"The processes of {self.name} can't be listed: it isn't our own server."
        )

    def can(self, capability: str) -> bool:
        """Whether this server has a capability.

        "restart", "superuser", "checkpoint", "files" (its data directory is readable here),
        "processes" (they can be watched from here), "contrib:NAME", "jit".
        """
        return self.missing(capability) is None

    def require(self, capability: str) -> None:
        """Raise CannotMeasure with the reason unless `can(capability)`."""
        if reason := self.missing(capability):
            raise CannotMeasure(capability, reason)

    @abstractmethod
    def missing(self, capability: str) -> str | None:
        """Why the capability isn't there; None if it is. ValueError for an unknown one."""

    def extension(self, name: str) -> str:
        """Make the contrib extension `name` available, or raise CannotMeasure.

        Returns the schema that holds its functions.
        """
        self.require(f"contrib:{name}")
        with self.connect() as connection:
            if not releases.has(self.version, "CREATE EXTENSION"):
                return self._module(connection, name)
            if self.owned:
                connection.execute(
                    sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name))
                )
            query = """
                SELECT n.nspname FROM pg_extension e
                JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = %s"""
            return value(connection, str, query, (name,))

    def _module(self, connection: psycopg.Connection, name: str) -> str:
        """The same before PostgreSQL 9.1, where a module is what its script has made."""
        query = """
            SELECT min(n.nspname::text) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE p.probin = %s"""  # bytes until 8.4, text from 9.0 on
        library = f"$libdir/{name}"
        if row(connection, query, [library]) == (None,):
            script = self.programs.contrib_script(name)
            connection.execute(script.read_text("utf-8").encode())
        return value(connection, str, query, [library])


class _Text(psycopg.adapt.Loader):
    """Text as far as it is UTF-8, with an escape for each byte that isn't."""

    def load(self, data: psycopg.abc.Buffer) -> str:
        return bytes(data).decode("utf-8", "backslashreplace")


def read_any_bytes(connection: psycopg.Connection) -> None:
    """Have names and statements of others read whatever bytes they are; say only ASCII here then.

    A database in SQL_ASCII may hold any, and hands them out to no client that asks for UTF-8. A
    server tells of other databases in their bytes.
    """
    for name in ("text", "varchar", "bpchar", "name", '"char"'):
        connection.adapters.register_loader(name, _Text)
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.execute("SET client_encoding = sql_ascii")


def set_session(connection: psycopg.Connection, settings: Mapping[str, object]) -> None:
    """Give the session these settings, until it ends or resets them.

    Those that switch off what the release doesn't have are left out; CannotMeasure for others that
    it doesn't know.
    """
    version = connection.info.server_version
    given = {
        name: wanted
        for name, wanted in settings.items()
        if not releases.without(version, name, wanted)
    }
    unknown = not releases.knows(version, "synchronous_commit")
    if unknown and given.get("synchronous_commit") == "off":
        flushed = value(connection, str, "SHOW fsync") == "on"
        if not flushed:  # at all, so that nobody waits for it (`releases.configured`)
            del given["synchronous_commit"]
    releases.require_settings(version, given)
    for name, wanted in given.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, str(wanted)])


def seed_random(connection: psycopg.Connection, seed: int) -> None:
    """Begin the session's random() anew: the same numbers for the same seed (0 to 2^31 - 1)."""
    connection.execute("SELECT setseed(%s::float8 / 2147483648)", [seed])


def _reload(connection: psycopg.Connection) -> None:
    """Reload the configuration and wait until it is in effect, here and in the server's other
    processes.
    """
    loaded = "SELECT pg_conf_load_time()"
    if not releases.has(connection.info.server_version, "pg_conf_load_time"):
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)  # nothing tells when
        return
    before = row(connection, loaded)
    connection.execute("SELECT pg_reload_conf()")
    while row(connection, loaded) == before:
        time.sleep(0.002)
    time.sleep(
        0.02
    )  # the others were signalled with this one, and say nothing when they have read it


# Process titles of auxiliary processes -> backend_type; until 10 they ended in " process".
_OLD_TITLES = {
    "writer": "background writer",
    "wal writer": "walwriter",
    "stats collector": "stats collector",
}
_TITLES = (
    "autovacuum launcher",
    "autovacuum worker",
    "background writer",
    "checkpointer",
    "io worker",
    "logical replication launcher",
    "logical replication worker",
    "parallel worker",
    "startup",
    "walwriter",
    "walsender",
    "walreceiver",
    "walsummarizer",
    "archiver",
    "logger",
    "stats collector",
    "slotsync worker",
)


def role(title: str) -> str:
    """The backend type that a process title ("postgres: io worker 1") stands for."""
    if not title.startswith("postgres: "):
        return "starting"  # forked, and not yet titled
    words = title.removeprefix("postgres: ").strip()
    words = _OLD_TITLES.get(words.removesuffix(" process"), words)
    return next((name for name in _TITLES if words.startswith(name)), "client backend")
