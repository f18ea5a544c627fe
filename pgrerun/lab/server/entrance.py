"""What is looked at on somebody's server before anything of ours is set or made there.

`look` only reads. An obstacle is what would do harm, or couldn't work; a run is refused by it, in
one paragraph. A remark is what whoever lends the server should know beforehand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg

from pgrerun.errors import printable
from pgrerun.lab.server import releases
from pgrerun.lab.server.client import APPLICATION, read_any_bytes
from pgrerun.lab.server.queries import row

SLACK = 2.0  # seconds by which a session may seem older than its connection
LEAST_ROOM = 2  # sessions beside the first that a run can't do without
LEAVE = 3  # connections that stay free for others, at least

_POOLER = (
    " The experiments set up their sessions and count what each of them does, and others would get"
    " these sessions afterwards; so nothing was set or made there. Name the server itself: its own"
    " host and port (5432, where nobody chose another), which are not the pooler's."
)


# A limit of the role's may be shorter than a look takes on a busy server.
_UNHURRIED = """
    SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout')"""


@dataclass
class Look:
    """What was seen. `settings` are the names of those that the server knows, `changed` those with
    no text for a value that the role or the database has of its own; `encryption` is how
    the session was encrypted, "" if in clear; `round_trip` is what the shortest statement takes, in
    seconds.
    """

    version: int
    encryption: str = ""
    settings: frozenset[str] = frozenset()
    changed: dict[str, str] = field(default_factory=dict)
    commits_wait_for: str = ""
    superuser: bool = False
    round_trip: float = 0.0
    obstacles: list[str] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)


def look(connection: psycopg.Connection, began: float) -> Look:
    """Look around by a session without settings of ours, to which connecting `began` then.

    That is a time of `time.monotonic()`. Nothing further is read through a pooler, and nothing set.
    """
    seen = Look(connection.info.server_version)
    if pooled := _pooled(connection, time.monotonic() - began):
        seen.obstacles.append(pooled)
        return seen
    connection.execute(_UNHURRIED)
    _read(connection, seen)
    _time(connection, seen)
    for check in (_no_writes, _may_create, _published, _decoded, _crowded):
        seen.obstacles += check(connection, seen)
    for tell in (_commits, _slots, _event_triggers):
        seen.remarks |= tell(connection, seen)
    return seen


def _pooled(connection: psycopg.Connection, seconds: float) -> str | None:
    """Why the session isn't ours alone, made for this connection; None if it is.

    A pooler answers with a process id of its own, or hands out a session that it had before.
    """
    pid, age = row(
        connection,
        "SELECT pg_catalog.pg_backend_pid(), (SELECT extract(epoch FROM"
        " pg_catalog.clock_timestamp() - backend_start)::float8 FROM pg_catalog.pg_stat_activity"
        " WHERE pid = pg_catalog.pg_backend_pid())",
    )
    if pid != connection.info.backend_pid:
        return (
            "Between here and the server is a connection pooler: the session belongs to another"
            f" process than the one that answered.{_POOLER}"
        )
    if age is not None and age > seconds + SLACK:
        return (
            "Between here and the server is a connection pooler: the session is"
            f" {age - seconds:.0f} s older than the connection.{_POOLER}"
        )
    return None


def _read(connection: psycopg.Connection, seen: Look) -> None:
    read_any_bytes(connection)
    query = (
        "SELECT name, vartype, source, setting || coalesce(unit, '') FROM pg_catalog.pg_settings"
    )
    every = connection.execute(query).fetchall()
    seen.settings = frozenset(name for name, *_ in every)
    seen.changed = {  # a text may name what is nobody else's business
        name: value
        for name, kind, source, value in every
        if kind != "string" and source in ("database", "user", "database user")
    }
    seen.encryption = encryption(connection)
    local = connection.info.host.startswith("/")
    in_clear = "they stay on this machine" if local else "in clear"
    seen.remarks["sessions"] = f"encrypted by {seen.encryption}" if seen.encryption else in_clear
    query = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    seen.superuser = row(connection, query)[0]
    spoken = _setting(connection, "lc_messages")
    if spoken and not seen.superuser and not spoken.startswith(("en", "C", "POSIX")):
        seen.remarks["messages"] = (
            f"in the language of {printable(spoken)}: what only a message in English tells is set"
            " aside"
        )


def encryption(connection: psycopg.Connection) -> str:
    """By what a session is encrypted: "TLS", "GSSAPI" or "" for in clear."""
    if connection.pgconn.ssl_in_use:
        return "TLS"
    if not releases.has(connection.info.server_version, "pg_stat_gssapi"):
        return ""
    query = "SELECT encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()"
    found = connection.execute(query).fetchone()
    return "GSSAPI" if found and found[0] else ""


def _time(connection: psycopg.Connection, seen: Look, times: int = 7) -> None:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        connection.execute("SELECT 1")
        taken.append(time.perf_counter() - began)
    seen.round_trip = min(taken)  # the others waited for a processor as well
    seen.remarks["a round trip"] = f"{1000 * seen.round_trip:.2g} ms"


def _setting(connection: psycopg.Connection, name: str) -> str:
    return str(row(connection, "SELECT pg_catalog.current_setting(%s)", [name])[0])


# -- obstacles --


def _no_writes(connection: psycopg.Connection, seen: Look) -> Iterator[str]:
    standby = row(connection, "SELECT pg_catalog.pg_is_in_recovery()")[0]
    if standby or _setting(connection, "default_transaction_read_only") == "on":
        yield (
            "The server takes no writes (a standby, or default_transaction_read_only is on). The"
            " experiments make relations of their own: name a server that can be written to."
        )


def _may_create(connection: psycopg.Connection, seen: Look) -> Iterator[str]:
    may, *quoted = row(
        connection,
        "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),"
        " pg_catalog.quote_ident(current_user),"
        " pg_catalog.quote_ident(pg_catalog.current_database())",
    )
    user, database = map(printable, quoted)
    if not may:
        yield (
            f"The user `{user}` may not create a schema in the database `{database}`. Its owner can"
            f" allow it: GRANT CREATE ON DATABASE {database} TO {user};"
        )


def _published(connection: psycopg.Connection, seen: Look) -> Iterator[str]:
    query = "SELECT pubname FROM pg_catalog.pg_publication WHERE puballtables ORDER BY 1"
    if names := _names(connection, query, "pg_publication"):
        yield (
            f"This database publishes all its tables ({names}), so ours would be sent to its"
            " subscribers, which have none of their names: replication would stop there, and the"
            " server would keep its log for them until its disk is full. Name another database of"
            " the server; one that is made for it will do (createdb)."
        )


def _decoded(connection: psycopg.Connection, seen: Look) -> Iterator[str]:
    query = (
        "SELECT slot_name FROM pg_catalog.pg_replication_slots WHERE slot_type = 'logical' AND"
        " database = pg_catalog.current_database() AND plugin <> 'pgoutput' ORDER BY 1"
    )
    if names := _names(connection, query, "pg_replication_slots"):
        yield (
            f"Somebody decodes every change in this database (replication slot {names}), and would"
            " get those of the experiments as well. Name another database of the server; one that"
            " is made for it will do (createdb)."
        )


def _crowded(connection: psycopg.Connection, seen: Look) -> Iterator[str]:
    room, free = free_connections(connection)
    if room < LEAST_ROOM:
        yield (
            f"Connections that are free for this user: {max(0, free)}. A run needs {LEAST_ROOM},"
            f" and {LEAVE} at least, or half of what is free, stay free for others. Try again when"
            " fewer are in use, or have max_connections (or the limit of this role or database)"
            " raised."
        )


def _names(connection: psycopg.Connection, query: str, since: str = "") -> str:
    """What a query names, in words; "" also where the release hasn't got what it asks for."""
    if since and not releases.has(connection.info.server_version, since):
        return ""
    found = [printable(name) for (name,) in connection.execute(query)]
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


# -- remarks --


def _commits(connection: psycopg.Connection, seen: Look) -> dict[str, str]:
    wanted = _setting(connection, "synchronous_commit")
    names = (
        _setting(connection, "synchronous_standby_names")
        if "synchronous_standby_names" in seen.settings
        else ""
    )
    if not names.strip() or wanted in ("off", "local"):
        return {}
    seen.commits_wait_for = printable(names)
    return {"commits": f"wait for a standby ({seen.commits_wait_for}), which is tried at first"}


def _slots(connection: psycopg.Connection, seen: Look) -> dict[str, str]:
    query = (
        "SELECT slot_name FROM pg_catalog.pg_replication_slots WHERE NOT active AND restart_lsn IS"
        " NOT NULL ORDER BY 1"
    )
    if names := _names(connection, query, "pg_replication_slots"):
        return {
            "replication slots": f"nobody reads {names}: the log that the experiments write is kept"
            " for it, too"
        }
    return {}


def _event_triggers(connection: psycopg.Connection, seen: Look) -> dict[str, str]:
    query = "SELECT evtname FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' ORDER BY 1"
    if names := _names(connection, query):
        return {"event triggers": f"{names}: they see each relation that is made and dropped"}
    return {}


# -- connections --

# An ordinary role sees of others' sessions no more than whose they are and in which database.
# Workers of parallel queries count along, which errs on the side of whoever else connects.
_FREE = """
    WITH session AS (
        SELECT s.datid, s.usesysid, s.application_name FROM pg_catalog.pg_stat_activity s
        WHERE s.usesysid IS NOT NULL AND (s.datid IS NOT NULL OR %s))
    SELECT (SELECT count(*) FROM session)::int,
           (SELECT sum(setting::int) FROM pg_catalog.pg_settings WHERE name IN (
                'superuser_reserved_connections', 'reserved_connections'))::int,
           pg_catalog.current_setting('max_connections')::int,
           d.datconnlimit, (SELECT count(*) FROM session WHERE datid = d.oid)::int,
           r.rolconnlimit, (SELECT count(*) FROM session WHERE usesysid = r.oid)::int,
           (SELECT count(*) FROM session
            WHERE usesysid = r.oid AND application_name IS DISTINCT FROM %s)::int
    FROM pg_catalog.pg_database d, pg_catalog.pg_roles r
    WHERE d.datname = pg_catalog.current_database() AND r.rolname = session_user"""


def free_connections(connection: psycopg.Connection) -> tuple[int, int]:
    """How many more sessions we may open, and how many are free.

    Of those that are free half stay so for others, `LEAVE` at least; of a limit of our own role
    all are ours, unless others have sessions of that role.
    """
    version = connection.info.server_version
    walsenders = not releases.has(version, "connections beside those of walsenders")
    used, kept, most, of_database, there, of_role, as_role, others = row(
        connection, _FREE, [walsenders, APPLICATION]
    )
    free = [most - kept - used] + ([of_database - there] if of_database >= 0 else [])
    room = [_shared(number) for number in free]
    if of_role >= 0:
        free.append(of_role - as_role)
        room.append(_shared(free[-1]) if others else free[-1])
    return min(room), min(free)


def _shared(free: int) -> int:
    return free - max(LEAVE, free // 2)
