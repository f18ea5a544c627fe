"""Secrets in a server's URL or connection string: found, refused, and never repeated.

papermill stores parameters in the executed notebook, and people publish notebooks. So no
parameter may carry a secret, by whichever of libpq's keywords, nor in a place where only a
wrongly written URL has it. The one list of those keywords is in `pgrerun.credentials`.

Where a server is (host, port, database, user) is no secret, but nobody else's business either: it
is left out of run records and their pages unless the reader has it kept.
"""

import os
import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgrerun import credentials
from pgrerun.errors import ParameterError

HOW_TO_GIVE_A_PASSWORD = (
    "Parameters are stored in the executed notebook, so a password must come another way: "
    "a password file (~/.pgpass or the one that PGPASSFILE names), a service file "
    "(`service=NAME`), or the environment variable PGPASSWORD."
)
STARTED_IN = "PGRERUN_STARTED_IN"
"""The environment variable that says where the reader stands: a kernel stands elsewhere."""

FILES = {
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcrl": "PGSSLCRL",
    "sslcrldir": "PGSSLCRLDIR",
    "passfile": "PGPASSFILE",
    "servicefile": "PGSERVICEFILE",
}
"""The connection keywords that name a file, with the environment variables that stand for them."""

KEEP_ADDRESS = "PGRERUN_KEEP_ADDRESS"
"""The environment variable by which a reader has addresses kept; `pgrerun run --keep-address`."""

LEFT_OUT = "left out of the record"
"""What stands in a record in the place of a server's URL."""

_UNREADABLE = (
    "The server can't be read as a URL (postgresql://USER@HOST:PORT/DATABASE) or as a libpq"
    " connection string (host=... dbname=...). It isn't repeated here, as it may hold a password."
)
_AT = (
    "The server's URL has an @ behind its host, so what stands before it may be a password with a"
    " / in it. It isn't repeated here. Write an @ that belongs to a database's name as %40. "
)


def keeps_address() -> bool:
    """Whether the reader wants a borrowed server's address in the run record."""
    return os.environ.get(KEEP_ADDRESS, "") not in ("", "0")


class CarriesSecret(ParameterError):
    """A server was named together with a password or another secret."""


def parse(spec: str) -> dict[str, str]:
    """The libpq keywords in a URL or a connection string.

    CarriesSecret if there is a secret among them, or if a URL's password may have ended up in
    another part; ParameterError for what can't be read. No message quotes `spec`.
    """
    try:
        where = {key: str(value) for key, value in conninfo_to_dict(spec).items()}
    except psycopg.Error:
        where = None
    if where is None:  # raised out here, so that no error that quotes it hangs on this one
        raise ParameterError(_UNREADABLE)
    named = any(where.get(key) for key in credentials.SECRETS)
    # a URL or a connection string in the place of a database's name, which libpq may follow
    if named or any(map(credentials.carries_one, where.values())):
        raise CarriesSecret(f"The server's URL carries a password. {HOW_TO_GIVE_A_PASSWORD}")
    if _path_has_at(spec):
        raise CarriesSecret(_AT + HOW_TO_GIVE_A_PASSWORD)
    if not all(_is_port(port) for port in where.get("port", "").split(",")):
        raise ParameterError(
            "The server's port must be a number from 1 to 65535. What stands in its place isn't"
            " repeated here, as it may be a password."
        )
    return where


def _path_has_at(spec: str) -> bool:
    """Whether a URL has an @ behind its authority, where a password with a / leaves it.

    Split as libpq does, which knows no fragment: a # is a letter of the path. In what follows the ?
    an @ is allowed, as some hosts' user names have one.
    """
    if not re.match(r"postgres(ql)?://", spec):
        return False
    return "@" in spec.partition("://")[2].partition("?")[0].partition("/")[2]


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and 0 < int(text) < 65536)
