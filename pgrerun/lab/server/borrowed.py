"""Somebody's server, reached by URL: a guest there, who leaves it as found.

We make one schema, `pgrerun`, marked by a comment, hold an advisory lock while we use
it, and drop it when done.  Nothing else is created, altered or dropped; settings are
made per session.  What we may not do there, `can` denies with the reason.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

import psutil
import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from pgrerun import credentials
from pgrerun.errors import CannotMeasure, RerunError, ServerError, printable
from pgrerun.lab.server import private, releases
from pgrerun.lab.server.binaries import OLDEST, bundled
from pgrerun.lab.server.client import APPLICATION, Server, role
from pgrerun.lab.server.passwords import HOW_TO_GIVE_A_PASSWORD, keeps_address, parse
from pgrerun.lab.server.private import PrivateDirectory
from pgrerun.lab.server.queries import row, value

SCHEMA = "pgrerun"
# What nobody else writes: the token lets us know our own schema again.
MARK = re.compile(r"pgrerun: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} ")
LOCK = int.from_bytes(b"pgrerun", "big")  # an advisory lock's key is a bigint
CONNECT_TIMEOUT = 5  # seconds


class Borrowed(Server):
    """A guest on the server that `spec`, a URL or a libpq connection string, reaches.

    ParameterError if `spec` carries a password or can't be read. ServerError if the server
    doesn't answer, doesn't let us in, is older than 9.3, lets us make no schema, or has a
    schema `pgrerun` that isn't ours or is in use by another run. The schema of a run that
    was killed is dropped and made anew.

    `address` is what messages to the reader say; `name`, which gets into run records, says no more
    than the release unless the reader has addresses kept (passwords.py).

    `settings` are given to each of our sessions, tools' included. `abstains` are capabilities
    that are not made use of even where the server would allow it, such as "checkpoint".
    """

    owned = False
    schema = SCHEMA

    def __init__(
        self,
        spec: str,
        *,
        settings: Mapping[str, str | int] | None = None,
        abstains: Collection[str] = (),
    ):
        super().__init__()
        self._where = parse(spec)
        self._settings: dict[str, str | int] = {"search_path": SCHEMA, **(settings or {})}
        self._abstains = frozenset(abstains)
        self.programs = bundled()
        self._lock_holder: psycopg.Connection | None = None
        self._mark: str | None = None
        self._home: PrivateDirectory | None = None
        self._secret: str | None = None
        self.name = "the borrowed server"
        self._address = "the server at " + _people(self._where)
        private.before_exit(self._close_quietly)
        try:
            self._enter()
            self._home = PrivateDirectory(private.base_directory())
            self.scratch = self._home.folder("scratch")
            self._claim_schema()
        except BaseException:
            self._close_quietly()
            raise

    @property
    def address(self) -> str:
        return self._address

    # -- coming and going --

    @property
    def _keeper(self) -> psycopg.Connection:
        """The session that holds our lock, and our schema with it."""
        if self._lock_holder is None:
            raise ServerError(f"{self.address} was never reached.")
        return self._lock_holder

    def _enter(self) -> None:
        """Open the session that holds our lock; note where we are for all later ones."""
        failure = ""
        ours = {"connect_timeout": str(CONNECT_TIMEOUT), "application_name": APPLICATION}
        try:
            # The user's PG* variables do count here: it is the user's server.
            whole = make_conninfo(**ours | self._where)
            self._lock_holder = psycopg.connect(whole, autocommit=True)
        except psycopg.Error as error:
            failure = str(error)
        if failure:  # raised out here, so that no frame that holds a password hangs on the error
            raise self._lost("A connection", failure)
        info = self._keeper.info
        # Resolved once (service file, environment, defaults), the same for all later sessions
        # and for tools, whatever happens to the environment meanwhile.
        resolved = {*credentials.SECRETS, "service", "servicefile", "passfile"}
        self._where = {
            key: value for key, value in info.get_parameters().items() if key not in resolved
        }
        self._where |= {"host": self._where.get("host", info.host), "port": str(info.port)}
        self._where |= {"user": info.user, "dbname": info.dbname}
        self._secret = info.password or None
        self.version = info.server_version
        self.version_text = info.parameter_status("server_version") or ""
        self._address = f"PostgreSQL {self.version_text} at {_people(self._where)}"
        borrowed = f"the borrowed PostgreSQL {self.version_text}"
        self.name = self._address if keeps_address() else borrowed
        if self.version < OLDEST[0] * 10000 + OLDEST[1] * 100:
            raise ServerError(
                f"{self.address} is too old: the experiments need {OLDEST[0]}.{OLDEST[1]} or later."
            )
        self._given_options = self._where.pop("options", "")

    def _claim_schema(self) -> None:
        keeper = self._keeper
        if releases.knows(self.version, "idle_session_timeout"):
            keeper.execute("SET idle_session_timeout = 0")  # or our lock would time out
        if not value(keeper, bool, "SELECT pg_try_advisory_lock(%s)", (LOCK,)):
            raise ServerError(self._other_run())
        try:
            if self._our_mark():
                self._drop_schema()
            self._create_schema()
        except psycopg.Error as error:
            failure = self._lost("Making our schema", str(error))
        else:
            return
        raise failure

    def _create_schema(self) -> None:
        mark = (
            f"pgrerun: {uuid.uuid4()} created {datetime.now(UTC):%Y-%m-%d %H:%M} UTC "
            f"by process {os.getpid()} on {socket.gethostname()}; dropped when that run ends"
        )
        try:
            with self._keeper.transaction():
                self._keeper.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
                comment = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(
                    sql.Identifier(SCHEMA), sql.Literal(mark)
                )
                self._keeper.execute(comment)
        except errors.InsufficientPrivilege:
            user, database = self._where["user"], self._where["dbname"]
            refusal = ServerError(
                f"On {self.address} the user `{user}` may not create a schema in the database"
                f" `{database}`. Its owner can allow it: GRANT CREATE ON DATABASE {database} TO"
                f" {user};"
            )
        except errors.ReadOnlySqlTransaction:
            refusal = ServerError(
                f"{self.address} takes no writes (a standby, or default_transaction_read_only is"
                " on). The experiments make relations of their own: name a server that can be"
                " written to."
            )
        else:
            self._mark = mark
            return
        raise refusal

    def _our_mark(self) -> str | None:
        """The mark of a schema of ours; None without any; ServerError for somebody's."""
        query = """SELECT obj_description(oid, 'pg_namespace'), pg_has_role(nspowner, 'USAGE'),
                          nspowner::regrole::text FROM pg_namespace WHERE nspname = %s"""
        if not releases.has(self.version, "regrole"):
            query = query.replace("nspowner::regrole::text", "pg_get_userbyid(nspowner)")
        found: tuple[str | None, bool, str] | None
        found = self._keeper.execute(query, (SCHEMA,)).fetchone()
        if found is None:
            return None
        comment, may_drop, owner = found
        if comment is None or not MARK.match(comment):
            raise ServerError(
                f"{self.address} has a schema `{SCHEMA}` that no run of ours made (owner {owner}),"
                f" so it stays untouched. Rename it (ALTER SCHEMA {SCHEMA} RENAME TO ...), or name"
                " another database."
            )
        if not may_drop:
            raise ServerError(
                f"{self.address} has the schema `{SCHEMA}` of a run as `{owner}` that was killed. "
                f"Connect as `{owner}`, or have it dropped: DROP SCHEMA {SCHEMA} CASCADE;"
            )
        return comment

    def _other_run(self) -> str:
        query = """SELECT a.pid, a.usename, a.client_addr, a.backend_start::text
                   FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                   WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                     AND (l.classid::bigint << 32 | l.objid::bigint) = %s
                     AND l.database = (
                         SELECT oid FROM pg_database WHERE datname = current_database())"""
        found = self._keeper.execute(query, (LOCK,)).fetchone()
        who = (
            "session {} of user {} from {} since {}".format(*found)
            if found
            else "a session that has just ended"
        )
        return (
            f"Another run is using the schema `{SCHEMA}` on {self.address} ({who}). Wait for it,"
            " end it, or name another database. Two runs at once would disturb each other's timings"
            " anyway."
        )

    def _drop_schema(self) -> None:
        """Drop our schema, and take nothing of anybody else's along."""
        self._end_our_sessions()
        self._keeper.execute("SET lock_timeout = '10s'")
        with self._keeper.transaction() as transaction:
            # A repeatable snapshot hides what other sessions create and drop meanwhile.
            self._keeper.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._keeper.execute("SET LOCAL client_min_messages = warning")
            before = self._foreign_objects()
            self._keeper.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))
            taken = sorted(before - self._foreign_objects())
            if taken:
                raise psycopg.Rollback(transaction)
        if taken:
            raise ServerError(
                f"On {self.address}, objects outside our schema `{SCHEMA}` depend on what is in it:"
                f" {', '.join(taken[:5])}. They would be dropped with it, so it stays. "
                f"Drop them yourself, then: DROP SCHEMA {SCHEMA} CASCADE;"
            )

    def _end_our_sessions(self) -> None:
        """End sessions of ours that still work in our schema: a tool that was killed has one.

        Ours are those of this user under our application name that hold a lock there; as we
        hold the advisory lock, no other run has any.
        """
        query = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND usename = current_user AND application_name = %s
              AND datname = current_database() AND pid IN (
                  SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s)"""
        self._keeper.execute(query, (APPLICATION, SCHEMA))

    def _foreign_objects(self) -> set[str]:
        """Everything outside our schema that DROP ... CASCADE could reach, by identity."""
        query = """
            WITH ours AS (
                SELECT oid FROM pg_namespace WHERE nspname = %s OR nspname LIKE 'pg\\_%%'),
            relation AS (
                SELECT oid FROM pg_class WHERE relnamespace NOT IN (SELECT oid FROM ours))
            SELECT 'relation ' || oid::regclass FROM relation
            UNION SELECT 'column ' || attname || ' of ' || attrelid::regclass FROM pg_attribute
                WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT oid FROM relation)
            UNION SELECT 'default of ' || adrelid::regclass || ' column ' || adnum FROM pg_attrdef
                WHERE adrelid IN (SELECT oid FROM relation)
            UNION SELECT 'constraint ' || conname || ' of ' || conrelid::regclass FROM pg_constraint
                WHERE conrelid IN (SELECT oid FROM relation)
            UNION SELECT 'trigger ' || tgname || ' of ' || tgrelid::regclass FROM pg_trigger
                WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM relation)
            UNION SELECT 'rule ' || rulename || ' of ' || ev_class::regclass FROM pg_rewrite
                WHERE ev_class IN (SELECT oid FROM relation)
            UNION SELECT 'function ' || oid::regprocedure FROM pg_proc
                WHERE pronamespace NOT IN (SELECT oid FROM ours)
            UNION SELECT 'type ' || oid::regtype FROM pg_type
                WHERE typnamespace NOT IN (SELECT oid FROM ours)
            UNION SELECT 'operator ' || oid::regoperator FROM pg_operator
                WHERE oprnamespace NOT IN (SELECT oid FROM ours)"""
        return {row[0] for row in self._keeper.execute(query, (SCHEMA,))}

    def close(self) -> None:
        """Drop our schema and end our sessions. ServerError if the schema has to stay."""
        if os.getpid() != self._creator:
            return
        try:
            self._close_connections()
            if self._home is not None:
                private.end_processes(self._home.path)
            self._leave()
        finally:
            if self._lock_holder is not None:
                self._lock_holder.close()
            if self._home is not None:
                self._home.close()
            private.before_exit(self._close_quietly, forget=True)

    def _leave(self) -> None:
        mark, self._mark = self._mark, None
        if mark is None:
            return
        failure = None
        try:
            if not self._answers():
                self._keeper.close()
                self._lock_holder = self._open(True)
            # Only the very schema that this run made; another run may have replaced it.
            if self._our_mark() == mark:
                self._drop_schema()
        except psycopg.Error as error:
            failure = str(error)
        if failure:
            raise ServerError(
                f"Our schema `{SCHEMA}` couldn't be dropped from {self.address}:"
                f" {self._scrub(failure)} The next run there drops it, or do it yourself: DROP"
                f" SCHEMA {SCHEMA} CASCADE;"
            )

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.Error):
            self._keeper.execute("SELECT 1")
            return True
        return False

    def _close_quietly(self) -> None:
        with contextlib.suppress(RerunError, psycopg.Error, OSError):
            self.close()

    # -- what the base asks for --

    def connection_parameters(self) -> dict[str, str]:
        ours = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options = f"{self._given_options} {ours}".strip()
        return self._where | {"application_name": APPLICATION, "options": options}

    def _password(self) -> str | None:
        return self._secret

    def _scrub(self, text: str) -> str:
        """`text` on one line and without our password, should a message quote it."""
        for secret in filter(None, (self._secret, os.environ.get("PGPASSWORD"))):
            text = text.replace(secret, "***")
        return " ".join(text.removeprefix("connection failed: ").split())

    def _lost(self, what: str, said: str) -> ServerError:
        return ServerError(
            f"{what} failed on {self.address}: {self._scrub(said)} {_advice(said)}".strip()
        )

    def background(self) -> dict[int, str]:
        """Process id -> role of the server's processes that serve no client.

        CannotMeasure unless they run on this host.
        """
        roles: dict[int, str] = {}
        with (
            self.connect() as connection,
            contextlib.suppress(psycopg.Error, psutil.Error, OSError),
        ):
            # none before 9.5
            [cluster] = row(
                connection, "SELECT max(setting) FROM pg_settings WHERE name = 'cluster_name'"
            )
            # stands in titles: "postgres: 17/main: checkpointer"
            named = f"{cluster}: " if cluster else ""
            for process in self.local_backend(connection).parent().children():
                with contextlib.suppress(psutil.Error):  # it has just ended
                    roles[process.pid] = role(" ".join(process.cmdline()).replace(named, "", 1))
        if not roles:
            raise CannotMeasure(
                "processes", f"The processes of {self.name} can't be watched from here."
            )
        return {
            pid: name for pid, name in roles.items() if name not in ("client backend", "starting")
        }

    def missing(self, capability: str) -> str | None:
        if capability in self._abstains:
            return f"It would be felt by everybody on {self.name}, so it isn't made use of."
        kind, _, name = capability.partition(":")
        if kind == "contrib":
            if self._holds("EXISTS (SELECT 1 FROM pg_extension WHERE extname = %s)", name):
                return None
            return (
                f"{self.name} doesn't have the extension {name} in this database, and we create"
                " none there."
            )
        checks = {
            "restart": lambda: "We don't restart somebody else's server.",
            "superuser": self._no_superuser,
            "checkpoint": self._no_checkpoint,
            "files": self._no_files,
            "processes": self._no_processes,
            "jit": self._no_jit,
        }
        if capability not in checks:
            raise ValueError(f"unknown capability {capability!r}")
        return checks[capability]()

    def _no_superuser(self) -> str | None:
        if self._holds("rolsuper FROM pg_roles WHERE rolname = current_user"):
            return None
        return f"{self._user()} is no superuser on {self.name}."

    def _user(self) -> str:
        return f"The user `{self._where['user']}`" if keeps_address() else "The user"

    def _no_checkpoint(self) -> str | None:
        member = releases.has(self.version, "pg_checkpoint") and self._holds(
            "pg_has_role('pg_checkpoint', 'USAGE')"
        )
        if member or not self._no_superuser():
            return None
        return f"{self._user()} may not CHECKPOINT on {self.name} (role pg_checkpoint, since 15)."

    def _no_files(self) -> str | None:
        reason = f"The data directory of {self.name} can't be read from here."
        with self.connect() as connection, contextlib.suppress(psycopg.Error, OSError):
            folder = Path(value(connection, str, "SHOW data_directory"))
            # The same path may exist on this host by chance; its postmaster must be this one's.
            postmaster = int((folder / "postmaster.pid").read_text().split()[0])
            if self.local_backend(connection).ppid() == postmaster:
                return None
        return reason

    def _no_processes(self) -> str | None:
        with (
            self.connect() as connection,
            contextlib.suppress(psycopg.Error, psutil.Error, OSError),
        ):
            self.local_backend(connection).io_counters()
            return None
        return f"The processes of {self.name} can't be watched from here."

    def local_backend(self, connection: psycopg.Connection) -> psutil.Process:
        """The process that serves `connection`; OSError unless it runs on this host."""
        process = psutil.Process(connection.info.backend_pid)
        here = connection.info.host.startswith("/") or connection.info.hostaddr in (
            "127.0.0.1",
            "::1",
        )
        if not here or not process.name().startswith("postgres"):
            raise OSError("elsewhere")
        return process

    def _no_jit(self) -> str | None:
        if releases.knows(self.version, "jit"):
            with self.connect() as connection:
                connection.execute("SET jit = on")
                if value(connection, bool, "SELECT pg_jit_available()"):
                    return None
        return f"{self.name} has no JIT compilation."


def place(spec: str) -> str:
    """Where a URL or a libpq connection string leads, for people.

    ParameterError as `Borrowed` raises it.
    """
    return _people(parse(spec))


def _people(where: dict[str, str]) -> str:
    """`where` in few words and on one line, for messages."""
    if "service" in where:
        parts = [f"service {where['service']}"]
    else:
        host = where.get("host") or where.get("hostaddr")
        host = host or os.environ.get("PGHOST", "the default socket")
        parts = [host if host.startswith("/") else f"{host}:{where.get('port', '5432')}"]
        parts += [f"database {where['dbname']}"] if "dbname" in where else []
        parts += [f"user {where['user']}"] if "user" in where else []
    return printable(", ".join(parts))


# libpq passes the server's refusals on as text only, without an SQLSTATE.
_ADVICE = (
    ("no password supplied|password authentication failed", HOW_TO_GIVE_A_PASSWORD),
    (
        "pg_hba.conf|[Pp]eer authentication failed|Ident authentication failed",
        (
            "The server's pg_hba.conf doesn't let this user in from here; ask who runs it, or name"
            " another user."
        ),
    ),
    ("role .* does not exist", "Name an existing user: postgresql://USER@HOST/DATABASE."),
    (
        "database .* does not exist",
        "Create the database first (createdb), or name an existing one.",
    ),
    (
        "too many clients|remaining connection slots",
        "The server has no connection free; try again later.",
    ),
    ("service", "Check ~/.pg_service.conf, or the file that PGSERVICEFILE names."),
    (
        "timeout|timed out|refused|No such file|could not translate|[Nn]etwork|resolve",
        (
            "Nothing answers there: check host and port, and that the server is running and"
            " reachable from here."
        ),
    ),
)


def _advice(said: str) -> str:
    return next((advice for pattern, advice in _ADVICE if re.search(pattern, said)), "")
