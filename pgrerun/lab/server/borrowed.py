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
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from pgrerun import credentials
from pgrerun.errors import CannotMeasure, Refused, RerunError, ServerError, printable
from pgrerun.lab.server import entrance, private, processes, releases
from pgrerun.lab.server.binaries import NONE, Programs, every
from pgrerun.lab.server.client import APPLICATION, Server, read_any_bytes, role
from pgrerun.lab.server.passwords import (
    FILES,
    HOW_TO_GIVE_A_PASSWORD,
    STARTED_IN,
    keeps_address,
    parse,
)
from pgrerun.lab.server.private import PrivateDirectory
from pgrerun.lab.server.queries import row, value

SCHEMA = "pgrerun"
OLDEST = (9, 3)  # the first whose catalogs tell all that a guest must not touch
# What nobody else writes: the token lets us know our own schema again.
MARK = re.compile(r"pgrerun: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} ")
LOCK = int.from_bytes(b"pgrerun", "big")  # an advisory lock's key is a bigint
CONSENT = "the server's consent"  # what an experiment lacks that is refused
CONNECT_TIMEOUT = 5  # seconds
_MAKING = "Making our schema"
PATIENCE = 10  # seconds for the first commit
# A network that is cut without a word is noticed in half a minute, not never.
_ALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# What a role's or a database's settings would end, unless the reader's URL has it so.
_UNHURRIED = dict.fromkeys(
    (
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
        "transaction_timeout",
    ),
    "0",
)
# How a session reads and prints, and on what its relations rest, whatever a role or a database has
# set: as PostgreSQL has it by default.
_FORMATS = {
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "xmloption": "content",
    "extra_float_digits": "3",  # all digits, on each release
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "check_function_bodies": "on",
    "row_security": "on",
    "client_min_messages": "notice",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "default_table_access_method": "heap",
    "default_toast_compression": "pglz",
    "default_with_oids": "off",
    "exit_on_error": "off",
}
# Known once the first session is there.
_RESOLVED = {
    *credentials.SECRETS,
    *("service", "servicefile", "passfile", "client_encoding", "hostaddr"),
    *("target_session_attrs", "load_balance_hosts"),
}

# What DROP SCHEMA ... CASCADE would take along of others', in the server's own words.
# Ours is what stands in our schema and what is a part of that ("a" and "i", of a partition "P" and
# "S"), unless it stands in another schema. What is left of what depends on it is somebody's; so is
# what another role has put into our schema.
_FOREIGN = """
    WITH RECURSIVE home AS (
        SELECT oid, nspowner FROM pg_namespace WHERE nspname = %(schema)s),
    ours (classid, objid) AS (
        SELECT 'pg_namespace'::regclass::oid, oid FROM home
        UNION
        SELECT d.classid, d.objid
        FROM ours o JOIN pg_depend d ON d.refclassid = o.classid AND d.refobjid = o.objid
        WHERE (d.deptype <> 'n' OR d.refclassid = 'pg_namespace'::regclass)
          AND d.classid <> 'pg_extension'::regclass
          AND NOT (d.classid = 'pg_class'::regclass AND d.objsubid <> 0)
          AND NOT EXISTS (
              SELECT 1 FROM pg_depend e
              WHERE e.classid = d.classid AND e.objid = d.objid
                AND e.refclassid = 'pg_namespace'::regclass
                AND e.refobjid NOT IN (SELECT oid FROM home)))
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM ours o JOIN pg_depend d ON d.refclassid = o.classid AND d.refobjid = o.objid
    WHERE NOT EXISTS (SELECT 1 FROM ours p WHERE p.classid = d.classid AND p.objid = d.objid)
      AND NOT EXISTS (
          SELECT 1 FROM pg_depend e JOIN pg_namespace n ON n.oid = e.refobjid
          WHERE e.classid = d.classid AND e.objid = d.objid
            AND e.refclassid = 'pg_namespace'::regclass AND n.nspname LIKE 'pg\\_temp\\_%%')
    UNION SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class c, home
    WHERE c.relnamespace = home.oid AND c.relowner <> home.nspowner
    UNION SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) FROM pg_proc p, home
    WHERE p.pronamespace = home.oid AND p.proowner <> home.nspowner
    UNION SELECT pg_describe_object('pg_type'::regclass, t.oid, 0) FROM pg_type t, home
    WHERE t.typnamespace = home.oid AND t.typowner <> home.nspowner"""


class Borrowed(Server):
    """A guest on the server that `spec`, a URL or a libpq connection string, reaches.

    ParameterError if `spec` carries a password or can't be read. ServerError if the server
    doesn't answer, doesn't let us in, is older than 9.3, or has a schema `pgrerun` that isn't ours
    or is in use by another run, and for every obstacle that entrance.py knows. The schema of a run
    that was killed is dropped and made anew.

    `address` is what messages to the reader say; `name`, which gets into run records, says no more
    than the release unless the reader has addresses kept (passwords.py).

    `programs` are tried first as its tools; where none are here it can do without. `settings` are
    given to each of our sessions, tools' included. `abstains` are capabilities that are not made
    use of even where the server would allow it, such as "checkpoint".
    """

    owned = False
    schema = SCHEMA

    def __init__(
        self,
        spec: str,
        programs: Programs | None = None,
        *,
        settings: Mapping[str, str | int] | None = None,
        abstains: Collection[str] = (),
    ):
        super().__init__()
        self._where: dict[str, str] = {}
        self._settings = {name: str(value) for name, value in (settings or {}).items()}
        self._abstains = frozenset(abstains)
        self.programs = programs or next(every(), NONE)
        self._lock_holder: psycopg.Connection | None = None
        self._mark: str | None = None
        self._made = False  # whether our schema is there; from then on sessions must be in it
        self._expected: tuple[Any, ...] | None = None
        self._home: PrivateDirectory | None = None
        self._secret: str | None = None
        self.name = "the borrowed server"
        self._address = "the server at " + place(spec)
        private.before_exit(self._close_quietly)
        try:
            self._enter(spec)
            private.sweep()
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
        assert self._lock_holder is not None  # `_enter` has opened it
        return self._lock_holder

    def _enter(self, spec: str) -> None:
        """Look at the server, and open the first session with settings of ours."""
        reached = _reach(spec)
        self._where, self._secret, self.seen = reached.where, reached.secret, reached.seen
        self._given_options = self._where.pop("options", "")
        self.version, self.version_text = reached.seen.version, reached.version
        self._address = reached.address
        self.name = (
            self._address if keeps_address() else f"the borrowed PostgreSQL {self.version_text}"
        )
        self.changed = dict(self.seen.changed)
        for obstacle in self.seen.obstacles:
            raise ServerError(f"No experiment runs on {self.address}. {obstacle}")
        ours = {
            "search_path": SCHEMA,
            **_FORMATS,
            **({"lc_messages": "C"} if self.seen.superuser else {}),
        }
        self._strict = _known(ours, self.seen) | self._settings
        failure = ""
        try:
            self._lock_holder = self._open(True)
            read_any_bytes(self._lock_holder)
        except psycopg.Error as error:
            failure = str(error)
        if failure:
            raise self._lost("A connection", failure)

    def _claim_schema(self) -> None:
        keeper = self._keeper
        # What only we wait for waits for no standby; whether one answers is tried once.
        keeper.execute("SET synchronous_commit = local")
        if not value(keeper, bool, "SELECT pg_try_advisory_lock(%s)", (LOCK,)):
            raise ServerError(self._other_run())
        try:
            if self._our_mark():
                self._drop_schema()
            self._create_schema()
            self._try_commit()
        except psycopg.Error as error:
            failure = self._lost(_MAKING, str(error))
        else:
            return
        raise failure

    def _create_schema(self) -> None:
        # noted first: an interrupt may come when the server has made the schema
        self._mark = (
            f"pgrerun: {uuid.uuid4()} created {datetime.now(UTC):%Y-%m-%d %H:%M} UTC "
            f"by process {os.getpid()} on {socket.gethostname()}; dropped when that run ends"
        )
        with self._keeper.transaction():
            self._keeper.execute(f"SET LOCAL statement_timeout = {1000 * PATIENCE}")
            self._keeper.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
            self._keeper.execute(self._comment())
        self._made = True
        self._verify(self._keeper)

    def _comment(self) -> sql.Composed:
        return sql.SQL("COMMENT ON SCHEMA {} IS {}").format(
            sql.Identifier(SCHEMA), sql.Literal(self._mark)
        )

    def _try_commit(self) -> None:
        """Commit as the experiments will, and wait no longer than `PATIENCE` for it."""
        late = threading.Event()

        def end(connection: psycopg.Connection) -> None:
            late.set()
            connection.cancel_safe(timeout=PATIENCE)

        with self.connect() as connection:
            timer = threading.Timer(PATIENCE, end, [connection])
            timer.start()
            try:
                connection.execute(self._comment())
            except errors.QueryCanceled:
                late.set()
            finally:
                timer.cancel()
        if late.is_set():
            awaited = self.seen.commits_wait_for
            raise ServerError(
                f"Commits on {self.address} take more than {PATIENCE} s: they wait for a standby"
                f" ({awaited}), and none answers. Try again when it does, or have"
                " synchronous_standby_names mended; with `options=-csynchronous_commit=local` in"
                " the URL our commits wait for no standby."
                if awaited
                else f"Commits on {self.address} take more than {PATIENCE} s. Try again later."
            )

    def _our_mark(self) -> str | None:
        """The mark of a schema of ours; None without any; ServerError for somebody's."""
        query = """SELECT obj_description(oid, 'pg_namespace'), pg_has_role(nspowner, 'USAGE'),
                          pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = %s"""
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
            self._keeper.execute("SET LOCAL client_min_messages = warning")
            self._lock_relations()  # so that nobody builds on them from here on
            found = self._keeper.execute(_FOREIGN, {"schema": SCHEMA}).fetchall()
            foreign = sorted({name for (name,) in found})
            if foreign:
                raise psycopg.Rollback(transaction)
            self._keeper.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))
        if foreign:
            raise ServerError(
                f"On {self.address}, objects of others are in our schema `{SCHEMA}` or depend on"
                f" what is in it: {', '.join(foreign[:5])}. They would be dropped with it, so it"
                f" stays. Drop them yourself, then: DROP SCHEMA {SCHEMA} CASCADE;"
            )

    def _lock_relations(self) -> None:
        query = """SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
                   WHERE nspname = %s AND relkind IN ('r', 'p')
                     AND pg_has_role(relowner, 'USAGE')"""
        names = [sql.Identifier(SCHEMA, name) for (name,) in self._keeper.execute(query, [SCHEMA])]
        if names:
            self._keeper.execute(
                sql.SQL("LOCK TABLE ONLY {}").format(sql.SQL(", ONLY ").join(names))
            )

    def _end_our_sessions(self) -> None:
        """End sessions of ours that still work in our schema: a tool that was killed has one.

        Ours are those of this user under our application name that hold a lock there, or on the
        schema itself, as one has that still commits a new relation; as we hold the advisory lock,
        no other run has any.
        """
        query = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND usename = session_user AND application_name = %s
              AND datname = current_database() AND pid IN (
                  SELECT l.pid FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
                  JOIN pg_locks l ON l.relation = c.oid
                    OR (l.classid = 'pg_namespace'::regclass AND l.objid = n.oid)
                  WHERE n.nspname = %s)"""
        self._keeper.execute("SET ROLE none")  # one who acts as another may end only its own
        self._keeper.execute(query, (APPLICATION, SCHEMA))
        self._keeper.execute("RESET ROLE")

    def close(self) -> None:
        """Drop our schema and end our sessions. ServerError if the schema has to stay."""
        if os.getpid() != self._creator:
            return
        try:
            self._close_connections()
            if self._home is not None:
                processes.end_processes(self._home.path)
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
                # the schema may be another run's by now
                self._made, self._expected = False, None
                self._lock_holder = self._open(True)
                self._keeper.execute("SET synchronous_commit = local")
            # Only the very schema that this run made; another run may have replaced it.
            if self._our_mark() == mark:
                self._drop_schema()
        except psycopg.Error as error:
            failure = str(error)
        if failure:
            raise ServerError(
                f"Our schema `{SCHEMA}` couldn't be dropped from {self.address}:"
                f" {_scrub(failure, self._secret)} The next run there drops it, or do it yourself:"
                f" DROP SCHEMA {SCHEMA} CASCADE;"
            )

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.Error):
            self._keeper.execute("SELECT 1")
            return True
        return False

    def _close_quietly(self) -> None:
        """Close, where nobody catches an error; what had to stay is told, at least."""
        try:
            self.close()
        except ServerError as left:
            print(left, file=sys.stderr)
        except (RerunError, psycopg.Error, OSError):
            pass

    # -- what the base asks for --

    def connection_parameters(self) -> dict[str, str]:
        options = " ".join(
            filter(
                None,
                (
                    _assignments(_known(_UNHURRIED, self.seen)),
                    self._given_options,
                    _assignments(self._strict),
                ),
            )
        )
        return self._where | {"application_name": APPLICATION, "options": options}

    def _open(self, autocommit: bool, **instead: str) -> psycopg.Connection:
        connection = super()._open(True, **instead)
        try:
            self._verify(connection)
            connection.autocommit = autocommit
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self, autocommit: bool = True, **instead: str) -> psycopg.Connection:
        self.require_connections(1)
        return super().connect(autocommit, **instead)

    def require_connections(self, number: int) -> None:
        room, free = self._free()
        if number > room:
            raise CannotMeasure(
                "connections",
                f"It needs {number} more of {self.name}, which has {max(free, 0)} free for us:"
                f" {entrance.LEAVE} at least, and half of them, stay so for others.",
            )

    @cached_property
    def room(self) -> int:
        """How many clients a load may have: counted once, so that all experiments mean the same."""
        return self._free()[0]

    def _free(self) -> tuple[int, int]:
        """See `entrance.free_connections`. Where nobody can be asked, connecting will tell."""
        try:
            return entrance.free_connections(self._keeper)
        except psycopg.Error:
            return sys.maxsize, sys.maxsize

    def _verify(self, connection: psycopg.Connection) -> None:
        """ServerError unless a new session is what we asked for: served by the process that
        answered, with our settings, and in our very schema.
        """
        cursor = psycopg.Cursor(connection)  # which keeps no account of what it sends
        pid, schema, standby, *shown = cursor.execute(self._question()).fetchone() or [None] * 3
        found = (schema, standby, *shown)
        if pid == connection.info.backend_pid and standby == "false":
            if self._expected is None and self._arrived(cursor):
                self._expected = found if self._made else None
                return
            if found == self._expected:
                return
        raise ServerError(
            f"A new session on {self.address} isn't what was asked for: our settings didn't arrive"
            " there, or it isn't the same server. A connection pooler or a load balancer in between"
            " does that, and a trigger on login can. Nothing of ours ran in it. Name the server"
            " itself, by its own host and port."
        )

    def _question(self) -> str:
        shown = "".join(f", pg_catalog.current_setting('{name}')" for name in self._strict)
        return (
            "SELECT pg_catalog.pg_backend_pid(), (SELECT oid::text FROM pg_catalog.pg_namespace"
            " WHERE nspname = pg_catalog.current_schema()), pg_catalog.pg_is_in_recovery()::text"
            f"{shown}"
        )

    def _arrived(self, cursor: psycopg.Cursor) -> bool:
        """Whether the session's settings are those that it was opened with."""
        query = "SELECT name FROM pg_catalog.pg_settings WHERE source = 'client'"
        return set(self._strict) <= {name for (name,) in cursor.execute(query)}

    def _password(self) -> str | None:
        return self._secret

    def _lost(self, what: str, said: str) -> ServerError:
        return _failure(what, self.address, said, self._secret)

    def refusal(self, error: Exception) -> CannotMeasure | None:
        """What the server itself answered, as long as it is there: a right that is missing, a limit
        of time, a lock, something that it doesn't know.
        """
        word = isinstance(error, Refused) or (isinstance(error, psycopg.Error) and error.sqlstate)
        if not word or isinstance(error, errors.DiskFull) or not self._answers():
            return None
        said = _scrub(str(error), self._secret).rstrip(".")
        return CannotMeasure(CONSENT, f"{self.name} refused: {said}.")

    # -- tools --

    def tool(
        self,
        name: str,
        *args: object,
        check: bool = True,
        timeout: float | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """As of every server, by programs whose sessions there are seen to be ours."""
        self.require("pgbench")
        return super().tool(name, *args, check=check, timeout=timeout, input=input)

    @cached_property
    def _no_tools(self) -> str | None:
        """Why no programs' psql gets the sessions that we get; None, and `programs` are the first
        whose does.
        """
        self.connect().close()  # or it's no fault of programs
        said = "There is none here; `pip install -r requirements.txt` brings it"
        found: dict[Path, Programs] = {}
        for one in (self.programs, *every()):
            found.setdefault(one.bindir, one)
        for programs in found.values():
            if not (programs.has("psql") and programs.has("pgbench")):
                continue
            self.programs = programs
            try:
                done = super().tool("psql", "-XAtc", self._question(), timeout=4 * PATIENCE)
            except ServerError as error:
                said = f"The last one tried: {error}"
                continue
            if tuple(done.stdout.rstrip("\n").split("|")[1:]) == self._expected:
                return None
            said = "The last one tried: its sessions there don't get our settings"
        encrypted = (
            f" The connection is encrypted by {self.seen.encryption}, and the tools' is to be, too;"
            " the programs that pip brings can't do that. Install PostgreSQL's own (Debian:"
            " `postgresql`, which has pgbench with TLS), or name them by -p programs=FOLDER."
            if self.seen.encryption
            else ""
        )
        return f"pgbench can't be used on {self.name}.{encrypted} {said}"

    # -- capabilities --

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
        if name == "pg_buffercache":
            return (
                "What asks for pg_buffercache empties the buffer pool first, which everybody on"
                f" {self.name} would feel."
            )
        if kind == "contrib":
            if self._holds("EXISTS (SELECT 1 FROM pg_extension WHERE extname = %s)", name):
                return None
            return (
                f"{self.name} doesn't have the extension {name} in this database, and we create"
                " none there."
            )
        checks: dict[str, Callable[[], str | None]] = {
            "restart": lambda: "We don't restart somebody else's server.",
            "superuser": self._no_superuser,
            "checkpoint": self._no_checkpoint,
            "files": self._no_files,
            "processes": self._no_processes,
            "jit": self._no_jit,
            "pgbench": lambda: self._no_tools,
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


@dataclass
class _Reached:
    """Where a URL led: libpq's keywords, complete, the password apart, and what was seen there."""

    where: dict[str, str]
    secret: str | None = field(repr=False)  # a traceback may show this
    version: str
    seen: entrance.Look

    @property
    def address(self) -> str:
        return f"PostgreSQL {self.version} at {_people(self.where)}"


def _reach(spec: str) -> _Reached:
    """Open a session without settings of ours, look around and close it.

    ParameterError and ServerError as `Borrowed` raises them.
    """
    given = _absolute(parse(spec))
    ours = {"connect_timeout": str(CONNECT_TIMEOUT), "application_name": APPLICATION, **_ALIVE}
    failure, began = "", time.monotonic()
    try:
        # The user's PG* variables do count here: it is the user's server.
        whole = make_conninfo(**ours | given | {"client_encoding": "utf8"})
        # A service file may name files as well, which only libpq reads out of it.
        with contextlib.chdir(_here()):
            first = psycopg.connect(whole, autocommit=True)
        with first as connection:
            version = connection.info.parameter_status("server_version") or ""
            if connection.info.server_version < releases.number(OLDEST):
                raise ServerError(
                    f"PostgreSQL {version} at {_people(given)} is too old: the experiments need"
                    f" {OLDEST[0]}.{OLDEST[1]} or later."
                )
            seen = entrance.look(connection, began)
            seen.remarks |= _told(seen)
            where = _resolved(connection.info, seen.encryption)
            return _Reached(where, connection.info.password or None, version, seen)
    except psycopg.Error as error:
        failure = str(error)
    # raised out here, so that no frame that holds a password hangs on the error
    raise _failure("A connection", "the server at " + _people(given), failure)


def _told(seen: entrance.Look) -> dict[str, str]:
    """Settings of the role or the database that reach our sessions, and so change what is found."""
    seen.changed = {
        name: value
        for name, value in seen.changed.items()
        if name not in _FORMATS and name not in _UNHURRIED
    }
    words = ", ".join(f"{name} = {value}" for name, value in seen.changed.items())
    return {"settings of this role or database": f"{words}: they count"} if words else {}


def _resolved(info: psycopg.ConnectionInfo, encryption: str) -> dict[str, str]:
    """Where a session leads, resolved once (service file, environment, defaults): the same for all
    later sessions and for tools, whatever happens to the environment, to a name that stands for
    several servers, or to their roles meanwhile. What was encrypted once is so always.
    """
    given = _absolute(info.get_parameters())
    where = {key: value for key, value in given.items() if key not in _RESOLVED}
    where |= {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    if info.hostaddr and not info.host.startswith("/"):
        where["hostaddr"] = info.hostaddr
    if encryption == "TLS" and not where.get("sslmode", "").startswith("verify"):
        where["sslmode"] = "require"
    if encryption == "GSSAPI":
        where["gssencmode"] = "require"
    return where


def look(spec: str) -> tuple[str, entrance.Look]:
    """What is to be seen on a server before anything is set or made there, after its address.

    ParameterError and ServerError as `Borrowed` raises them, but for obstacles, which are told.
    """
    reached = _reach(spec)
    return reached.address, reached.seen


def _scrub(text: str, secret: str | None) -> str:
    """`text` on one line and without our password, should a message quote it; with a full stop."""
    for one in filter(None, (secret, os.environ.get("PGPASSWORD"))):
        text = text.replace(one, "***")
    text = text.partition("\nCONTEXT:")[0]  # where in a function of theirs
    text = " ".join(text.removeprefix("connection failed: ").split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _failure(what: str, address: str, said: str, secret: str | None = None) -> ServerError:
    """The error for a connection or a tool that failed; `said` is what it printed."""
    advice, said = _advice(said), _scrub(said, secret)
    if what == _MAKING and not advice:
        advice = (
            "A trigger or a right may be in the way: ask who runs it, or name another database."
        )
    return ServerError(f"{what} failed on {address}: {said} {advice}".strip())


def _absolute(where: Mapping[str, str]) -> dict[str, str]:
    """`where` with the files that it names as they are seen from where the reader stands."""
    return {
        key: os.path.join(_here(), value) if key in FILES and value not in ("", "system") else value
        for key, value in where.items()
    }


def _here() -> str:
    """Where the reader stands."""
    return os.environ.get(STARTED_IN) or os.getcwd()


def _known(settings: Mapping[str, str], seen: entrance.Look) -> dict[str, str]:
    """Those that the release knows and can be given: until 9.5 `options` took no spaces."""
    spaces = releases.has(seen.version, "spaces in options")
    return {
        name: value
        for name, value in settings.items()
        if name in seen.settings and (spaces or " " not in value)
    }


def _assignments(settings: Mapping[str, str]) -> str:
    """Settings as the startup parameter `options` takes them."""
    escaped = {name: re.sub(r"([\\ ])", r"\\\1", value) for name, value in settings.items()}
    return " ".join(f"-c {name}={value}" for name, value in escaped.items())


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
        host = f"[{host}]" if ":" in host else host  # of IPv6
        parts = [host if host.startswith("/") else f"{host}:{where.get('port', '5432')}"]
        parts += [f"database {where['dbname']}"] if "dbname" in where else []
        parts += [f"user {where['user']}"] if "user" in where else []
    return printable(", ".join(parts))


# libpq passes the server's refusals on as text only, without an SQLSTATE.
_ADVICE = (
    ("no password supplied", HOW_TO_GIVE_A_PASSWORD),
    (
        "password authentication failed",
        f"It may be wrong, or have expired (VALID UNTIL). {HOW_TO_GIVE_A_PASSWORD}",
    ),
    (
        "pg_hba.conf|[Pp]eer authentication failed|Ident authentication failed",
        (
            "The server's pg_hba.conf doesn't let this user in from here; ask who runs it, or name"
            " another user."
        ),
    ),
    (
        "role .* does not exist|local user with ID",
        "Name an existing user: postgresql://USER@HOST/DATABASE.",
    ),
    (
        "database .* does not exist",
        "Create the database first (createdb), or name an existing one.",
    ),
    (
        "too many clients|remaining connection slots",
        "The server has no connection free; try again later.",
    ),
    (
        "statement timeout|lock timeout|transaction timeout",
        "The server ends what takes longer than it has been set to; have the limit raised for this"
        " user.",
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
